import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { advance, CLOCK_START } from "./clock.ts";

const entropies = fc.array(fc.double({ min: 0, max: 12, noNaN: true }), { minLength: 1 });

Deno.test("advance counts only what entropy falls", () => {
  const clock = [3, 1, 2, 0.5].reduce(advance, CLOCK_START);
  assertEquals(clock.tau, 2 + 1.5);
  assertEquals(clock.entropy, 0.5);
});

Deno.test("advance starts to count at the second distribution", () => {
  assertEquals(advance(CLOCK_START, 5), { ...CLOCK_START, entropy: 5 });
});

Deno.test("the pace averages the latest drops", () => {
  const clock = [5, 3, 4].reduce(advance, CLOCK_START);
  assertAlmostEquals(clock.pace ?? NaN, 2 * 0.9, 1e-12);
  const steady = Array.from({ length: 200 }, (_, t) => t % 2).reduce(advance, clock);
  assertAlmostEquals(steady.pace ?? NaN, 0.5, 0.05);
});

Deno.test("advance never turns back", () => {
  fc.assert(fc.property(entropies, (steps) => {
    let clock = CLOCK_START;
    for (const entropy of steps) {
      const next = advance(clock, entropy);
      assert(next.tau >= clock.tau);
      clock = next;
    }
  }));
});

Deno.test("tau is half the total variation of H plus half its net drop", () => {
  fc.assert(fc.property(entropies, (steps) => {
    let variation = 0;
    for (let t = 1; t < steps.length; t++) {
      variation += Math.abs((steps[t] as number) - (steps[t - 1] as number));
    }
    const drop = (steps[0] as number) - (steps.at(-1) as number);
    assertAlmostEquals(steps.reduce(advance, CLOCK_START).tau, (variation + drop) / 2, 1e-9);
  }));
});

Deno.test("with a floor, tau is that of the entropies raised to it", () => {
  fc.assert(fc.property(entropies, fc.double({ min: 0, max: 5, noNaN: true }), (steps, floor) => {
    const floored = steps.reduce(advance, { ...CLOCK_START, floor });
    const raised = steps.map((entropy) => Math.max(floor, entropy)).reduce(advance, CLOCK_START);
    assertAlmostEquals(floored.tau, raised.tau, 1e-9);
    assertEquals(floored.entropy, steps.at(-1));
  }));
});
