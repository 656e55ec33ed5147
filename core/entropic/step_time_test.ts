import { assert, assertAlmostEquals } from "@std/assert";
import fc from "fast-check";
import { randomNumbers } from "../../tests/support/random.ts";
import { FIRST_FIT, observeStepTime, type StepTimeFit } from "./step_time.ts";

function fitted(
  steps: number,
  time: (decodes: number, prefillTokens: number) => number,
  start: StepTimeFit = FIRST_FIT,
): StepTimeFit {
  const random = randomNumbers(5);
  let fit = start;
  for (let i = 0; i < steps; i++) {
    const decodes = Math.floor(9 * random());
    const prefillTokens = random() < 0.3 ? Math.ceil(32 * random()) : 0;
    if (decodes + prefillTokens === 0) continue;
    fit = observeStepTime(fit, {
      decodes,
      prefillTokens,
      milliseconds: time(decodes, prefillTokens),
    });
  }
  return fit;
}

Deno.test("observeStepTime finds the prices of a machine, noise or not", () => {
  const random = randomNumbers(6);
  for (const noise of [0, 0.2]) {
    const fit = fitted(600, (d, p) => (6 + 3 * d + 2 * p) * (1 + noise * (random() - 0.5)));
    assertAlmostEquals(fit.step, 6, 0.1 + 3 * noise);
    assertAlmostEquals(fit.decode, 3, 0.02 + noise);
    assertAlmostEquals(fit.prefill, 2, 0.02 + noise);
  }
});

Deno.test("observeStepTime follows a machine that becomes slower", () => {
  const fast = fitted(600, (d, p) => 6 + 3 * d + 2 * p);
  const slow = fitted(1500, (d, p) => 12 + 6 * d + 4 * p, fast);
  assertAlmostEquals(slow.decode, 6, 0.1);
});

Deno.test("observeStepTime gives the total right where the steps cannot tell its parts apart", () => {
  let fit = FIRST_FIT;
  for (let i = 0; i < 100; i++) {
    fit = observeStepTime(fit, { decodes: 4, prefillTokens: 0, milliseconds: 30 });
  }
  assertAlmostEquals(fit.step + 4 * fit.decode, 30, 0.1);
});

Deno.test("observeStepTime never gives a price below zero", () => {
  const amount = fc.nat(64);
  const steps = fc.array(fc.tuple(amount, amount, fc.double({ min: 0, max: 1e4, noNaN: true })));
  fc.assert(fc.property(steps, (seen) => {
    let fit = FIRST_FIT;
    for (const [decodes, prefillTokens, milliseconds] of seen) {
      fit = observeStepTime(fit, { decodes, prefillTokens, milliseconds });
      for (const price of [fit.step, fit.decode, fit.prefill]) {
        assert(price > 0 && price < Infinity, String(price));
      }
    }
  }));
});
