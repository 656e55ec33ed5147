import { assert, assertAlmostEquals, assertEquals, assertGreater, assertLess } from "@std/assert";
import fc from "fast-check";
import { DEFAULT_MASS, LENGTHS } from "./pruning.ts";
import {
  hasFailed,
  heldAt,
  measurementsOf,
  observeDivergence,
  type Safeguards,
  settingsOf,
  startSafeguards,
} from "./safeguards.ts";

const BOUND = 0.02;
const START = startSafeguards(
  [{ length: 1024, mass: 0.9 }, { length: 4096, mass: 0.95 }],
  undefined,
  BOUND,
);

/** Uniform numbers in [0, 1), the same each time. */
function* uniforms(seed: number): Generator<number, never> {
  for (let state = seed >>> 0;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** A loop of `steps` measurements at 2000 tokens whose mean follows the mass that is held. */
function loop(state: Safeguards, steps: number, meanAt: (mass: number) => number) {
  const uniform = uniforms(5);
  let sum = 0, least = 1;
  for (let step = 0; step < steps; step++) {
    const { mass } = heldAt(state, 2000);
    // Log-normal with sigma 1.5: as uneven as real divergences.
    const normal = Math.sqrt(-2 * Math.log(1 - uniform.next().value)) *
      Math.cos(2 * Math.PI * uniform.next().value);
    const nats = meanAt(mass) * Math.exp(1.5 * normal - 1.125);
    state = observeDivergence(state, "mass", 2000, nats, true);
    sum += nats;
    least = Math.min(least, heldAt(state, 2000).mass);
  }
  return { state, mean: sum / steps, least };
}

Deno.test("safeguards start from the table, and from the default without one", () => {
  assertEquals([1500, 3000, 5000, 9000].map((length) => heldAt(START, length).mass), [
    0.9,
    0.9,
    0.95,
    0.95,
  ]);
  assertAlmostEquals(heldAt(startSafeguards([]), 2000).mass, DEFAULT_MASS, 1e-12);
});

Deno.test("startSafeguards holds no less than the floor of mass, however long nothing diverges", () => {
  let state = startSafeguards([], undefined, BOUND, 0.97);
  assertAlmostEquals(heldAt(state, 2000).mass, 0.97, 1e-12);
  for (let i = 0; i < 500; i++) state = observeDivergence(state, "mass", 2000, 0, true);
  assertAlmostEquals(heldAt(state, 2000).mass, 0.97, 1e-12);
  assertEquals(heldAt(startSafeguards([], undefined, BOUND, 1), 2000).mass, 1);
});

Deno.test("a divergence beyond the window's budget lessens what is left out, at once", () => {
  const after = observeDivergence(START, "mass", 2000, 1, true);
  assertAlmostEquals(heldAt(after, 1500).mass, 0.93, 1e-12);
  assertEquals(heldAt(after, 3000).mass, 0.9, "other lengths keep their setting");
  assertEquals(heldAt(after, 1500).threshold, heldAt(START, 1500).threshold);
});

Deno.test("a quiet window lowers the mass a little, a middling one leaves it", () => {
  const window = (nats: number, start: Safeguards) =>
    Array.from({ length: 32 }).reduce<Safeguards>(
      (state) => observeDivergence(state, "mass", 2000, nats, true),
      start,
    );
  const mass = (state: Safeguards) => heldAt(state, 2000).mass;
  const free = startSafeguards([], undefined, BOUND);
  assertAlmostEquals(mass(window(0.001, free)), 1 - 0.05 * 1.1, 1e-12);
  assertEquals(mass(window(0.012, free)), mass(free));
  assertEquals(mass(window(0.001, START)), 0.9, "not below what was calibrated");
  const raised = observeDivergence(START, "mass", 2000, 1, true);
  assertAlmostEquals(mass(window(0.001, raised)), 1 - 0.07 * 1.1, 1e-12);
});

Deno.test("the controller holds the mean divergence under the bound", () => {
  for (const scale of [0.3, 1, 3, 20]) {
    const meanAt = (mass: number) => scale * (1 - mass) ** 2;
    const { state } = loop(START, 3000, meanAt);
    const { mean, state: later } = loop(state, 3000, meanAt);
    assertLess(mean, BOUND, `scale ${scale}`);
    assert(!hasFailed(later, "mass"));
  }
});

Deno.test("without a calibration the controller uses a good part of the bound", () => {
  const free = startSafeguards([], undefined, BOUND);
  const masses = [20, 2, 0.3].map((scale) => {
    const meanAt = (mass: number) => scale * (1 - mass) ** 2;
    const { state } = loop(free, 6000, meanAt);
    const { mean } = loop(state, 6000, meanAt);
    assertGreater(mean, 0.3 * BOUND);
    assertLess(mean, BOUND);
    return heldAt(state, 2000).mass;
  });
  assertEquals(masses, masses.toSorted((a, b) => b - a));
});

Deno.test("the controller keeps a calibration that keeps the bound", () => {
  const meanAt = () => 0.3 * BOUND;
  const { state, least } = loop(START, 3000, meanAt);
  assertEquals(least, 0.9);
  assertLess(heldAt(state, 2000).mass, 0.93);
});

Deno.test("a policy fails when its most careful setting breaks the bound, and only then", () => {
  let state = START, steps = 0;
  while (!hasFailed(state, "mass")) {
    assert(steps < 10);
    assert(heldAt(state, 2000).mass < 0.99 || steps === 7);
    state = observeDivergence(state, "mass", 2000, 1, true);
    steps++;
  }
  // From .1 down to .01 in seven steps, and once more there.
  assertEquals(steps, 8);
  assert(!hasFailed(state, "paper"));
});

Deno.test("divergences of budgets that a request fixed are counted, and steer nothing", () => {
  const after = observeDivergence(START, "mass", 2000, Infinity, false);
  assertEquals(heldAt(after, 2000), heldAt(START, 2000));
  assertEquals(after.ranges[0]?.mass.window.count, 0);
  assertEquals(measurementsOf(after), { count: 1, nats: 20 });
  assertEquals(settingsOf(after)[0]?.divergence, { mass: 20, paper: 0 });
});

Deno.test("no measurements take a setting out of its range", () => {
  const measurements = fc.array(
    fc.record({
      policy: fc.constantFrom("mass" as const, "paper" as const),
      context: fc.integer({ min: 1, max: 20_000 }),
      nats: fc.oneof(fc.double({ min: 0, max: 0.1, noNaN: true }), fc.constantFrom(0, 1, Infinity)),
    }),
    { maxLength: 2000, size: "max" },
  );
  fc.assert(
    fc.property(measurements, (all) => {
      const end = all.reduce(
        (state, { policy, context, nats }) => observeDivergence(state, policy, context, nats, true),
        START,
      );
      for (const context of LENGTHS) {
        const { mass, threshold } = heldAt(end, context);
        assert(mass >= 0.5 && mass <= 0.99 && threshold >= 1e-5 && threshold <= 0.1);
      }
    }),
    { numRuns: 30 },
  );
});
