import { assert, assertAlmostEquals } from "@std/assert";
import { endRate, FIRST_WORKLOAD, observeStep, tokenTime } from "./workload.ts";

const STEP = { decodes: 8, prefillTokens: 0, milliseconds: 38, drawn: 8, ended: 0 };

Deno.test("endRate goes from the first guess to the rate seen, and on with a changed one", () => {
  let workload = FIRST_WORKLOAD;
  const run = (steps: number, every: number) => {
    for (let i = 1; i <= steps; i++) {
      workload = observeStep(workload, { ...STEP, ended: Number(i % every === 0) });
    }
  };
  assertAlmostEquals(endRate(workload), 1 / 128, 1e-12);
  run(20_000, 5);
  assertAlmostEquals(endRate(workload), 1 / 40, 1e-4);
  run(40_000, 20);
  assert(endRate(workload) < 1 / 120);
});

Deno.test("tokenTime shares the common part of a step over those who decode in it", () => {
  let workload = FIRST_WORKLOAD;
  for (let i = 0; i < 2000; i++) {
    const decodes = 4 + i % 9;
    workload = observeStep(workload, { ...STEP, decodes, milliseconds: 6 + 4 * decodes });
  }
  assertAlmostEquals(tokenTime(workload), 6 / workload.batch + 4, 0.1);
  assertAlmostEquals(workload.batch, 8, 0.5);
});
