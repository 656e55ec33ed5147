import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  type Attending,
  ATTENTION_FLOOR,
  type AttentionBudget,
  attentionBudget,
  type AttentionControl,
  DEFAULT_MASS,
  DENSE_BELOW,
  lengthIndex,
  LENGTHS,
  massFor,
  MIN_BLOCKS,
} from "./pruning.ts";

const HELD = { mass: 0.93, threshold: 0.001 };

function at(context: number, more: Partial<Attending> = {}): Attending {
  const blocks = Math.ceil(context / 16);
  return { context, blocks, entropy: 2, meanEntropy: 2, maxEntropy: 10, ...more };
}

const attending = fc.record({
  context: fc.integer({ min: 1, max: 10_000 }),
  entropy: fc.double({ min: 0, max: 10, noNaN: true }),
  meanEntropy: fc.double({ min: 0, max: 10, noNaN: true }),
}).map(({ context, ...entropies }) => at(context, entropies));

const controls: fc.Arbitrary<AttentionControl> = fc.record({
  policy: fc.constantFrom("mass" as const, "paper" as const),
  mass: fc.double({ min: 0, max: 1, noNaN: true }),
  minBlocks: fc.nat(100),
  gain: fc.double({ min: -1, max: 1, noNaN: true }),
  threshold: fc.double({ min: 0, max: 1, noNaN: true }),
}, { requiredKeys: ["policy"] });

/** Most of the attention that a budget can leave out. */
function mostDropped(budget: AttentionBudget, { blocks }: Attending): number {
  if (budget.kind === "dense") return 0;
  return budget.kind === "mass" ? 1 - budget.mass : budget.threshold * blocks;
}

Deno.test("attentionBudget is dense where it is off and in short contexts", () => {
  assertEquals(attentionBudget({ policy: "off" }, at(5000), HELD), { kind: "dense" });
  for (const policy of ["mass", "paper"] as const) {
    assertEquals(attentionBudget({ policy }, at(DENSE_BELOW - 1), HELD), { kind: "dense" });
    assert(attentionBudget({ policy }, at(DENSE_BELOW), HELD).kind !== "dense");
    assert(attentionBudget({ policy }, at(500), HELD, { denseBelow: 0 }).kind !== "dense");
    assertEquals(attentionBudget({ policy, minBlocks: 100 }, at(1600), HELD), { kind: "dense" });
  }
});

Deno.test("attentionBudget takes the engine's mass where the control names none", () => {
  const minBlocks = MIN_BLOCKS;
  const budget = (control: Partial<AttentionControl>) =>
    attentionBudget({ policy: "mass", ...control }, at(2000), HELD);
  assertEquals(budget({}), { kind: "mass", mass: 0.93, minBlocks });
  assertEquals(budget({ mass: 0.8 }), { kind: "mass", mass: 0.8, minBlocks });
});

Deno.test("attentionBudget adds the gain for each nat above the mean", () => {
  const budget = (entropy: number) =>
    attentionBudget({ policy: "mass", mass: 0.8, gain: 0.1 }, at(2000, { entropy }), HELD);
  assertEquals(budget(3), { kind: "mass", mass: 0.9, minBlocks: MIN_BLOCKS });
  assertEquals(budget(9), { kind: "mass", mass: 1, minBlocks: MIN_BLOCKS });
});

Deno.test("the paper's threshold falls to 0 as H rises to log V", () => {
  const threshold = (entropy: number) => {
    const budget = attentionBudget({ policy: "paper" }, at(2000, { entropy }), HELD);
    return budget.kind === "threshold" ? budget.threshold : NaN;
  };
  assertEquals([threshold(0), threshold(5), threshold(10)], [0.001, 0.0005, 0]);
});

Deno.test("attentionBudget goes below no floor, whatever is asked", () => {
  const floors = fc.record({
    mass: fc.double({ min: 0.5, max: 1, noNaN: true }),
    minBlocks: fc.integer({ min: 4, max: 50 }),
  });
  fc.assert(fc.property(controls, attending, floors, (control, now, floor) => {
    const budget = attentionBudget(control, now, HELD, { floor });
    assert(mostDropped(budget, now) <= 1 - floor.mass + 1e-12);
    assert(budget.kind === "dense" || budget.minBlocks >= floor.minBlocks);
  }));
});

Deno.test("attentionBudget drops less where H is higher, under paper and a positive gain", () => {
  fc.assert(
    fc.property(
      controls,
      attending,
      fc.double({ min: 0, max: 5, noNaN: true }),
      (control, now, more) => {
        const asked = { ...control, gain: Math.abs(control.gain ?? 0) };
        const low = attentionBudget(asked, now, HELD);
        const high = attentionBudget(asked, { ...now, entropy: now.entropy + more }, HELD);
        assert(mostDropped(high, now) <= mostDropped(low, now) + 1e-12);
      },
    ),
  );
});

Deno.test("massFor takes the last entry within the context, else the first", () => {
  const table = [{ length: 1024, mass: 0.9 }, { length: 4096, mass: 0.95 }];
  assertEquals([500, 1024, 4095, 4096, 9000].map((length) => massFor(table, length)), [
    0.9,
    0.9,
    0.9,
    0.95,
    0.95,
  ]);
  assertEquals(massFor([], 2000), DEFAULT_MASS);
});

Deno.test("lengthIndex finds the lengths that a context belongs to", () => {
  assertEquals([1, 1024, 2047, 2048, 1e6].map(lengthIndex), [0, 0, 0, 1, LENGTHS.length - 1]);
});

Deno.test("the floors are such that the default policy keeps them", () => {
  assert(ATTENTION_FLOOR.mass <= DEFAULT_MASS && ATTENTION_FLOOR.minBlocks <= MIN_BLOCKS);
});
