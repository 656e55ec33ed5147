import { assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { addCost, efficiency, flopsOf, NO_COST, shareCost, type StepWork } from "./cost.ts";

const SMOLLM2 = {
  layers: 30,
  hiddenSize: 576,
  feedForwardSize: 1536,
  heads: 9,
  kvHeads: 3,
  headSize: 64,
  vocabularySize: 49152,
};

const decode = (position: number): StepWork => ({
  tokens: 1,
  position,
  rows: 1,
  kvBytes: 0,
});

Deno.test("flopsOf a first token is twice the weights that it passes, and one position", () => {
  const weights = 134_479_872; // of SmolLM2-135M's matrices, the tied embedding once
  assertEquals(flopsOf(SMOLLM2, decode(0)), 2 * weights + 4 * 30 * 9 * 64);
});

Deno.test("flopsOf a prompt is that of its tokens one by one, less the rows nobody asked for", () => {
  const whole = flopsOf(SMOLLM2, { tokens: 7, position: 5, rows: 1, kvBytes: 0 });
  const single = [5, 6, 7, 8, 9, 10, 11].map((position) => flopsOf(SMOLLM2, decode(position)));
  assertEquals(whole, single.reduce((x, y) => x + y) - 6 * 2 * 576 * 49152);
});

Deno.test("flopsOf takes the multiply-adds of attention that the backend counted", () => {
  const dense = flopsOf(SMOLLM2, decode(1000));
  const macs = 2 * 30 * 9 * 64 * 1001;
  assertEquals(flopsOf(SMOLLM2, { ...decode(1000), attentionMacs: macs }), dense);
  assertEquals(flopsOf(SMOLLM2, { ...decode(1000), attentionMacs: macs / 2 }), dense - macs);
});

Deno.test("shareCost gives out exactly what a step cost, alike to equals", () => {
  const work = fc.record({
    tokens: fc.integer({ min: 1, max: 64 }),
    position: fc.nat(4000),
    rows: fc.integer({ min: 0, max: 1 }),
    attentionMacs: fc.nat(1e9),
    kvBytes: fc.nat(1e6),
  });
  const steps = fc.array(work, { minLength: 1, maxLength: 20 });
  fc.assert(fc.property(steps, (step) => {
    const shares = shareCost(SMOLLM2, [...step, step[0]!], { weightBytes: 1e8, seconds: 0.02 });
    const sum = shares.reduce(addCost, NO_COST);
    assertAlmostEquals(sum.weightBytes, 1e8, 1);
    assertAlmostEquals(sum.seconds, 0.02, 1e-9);
    assertEquals(shares.at(-1), shares[0]);
  }));
});

Deno.test("efficiency is tau for each unit spent, and 0 before anything is", () => {
  const cost = { flops: 2e9, weightBytes: 3e9, kvBytes: 1e9, seconds: 0.5 };
  assertEquals(efficiency(8, cost), {
    natsPerSecond: 16,
    natsPerGigaflop: 4,
    natsPerGigabyte: 2,
  });
  assertEquals(Object.values(efficiency(0, NO_COST)), [0, 0, 0]);
});
