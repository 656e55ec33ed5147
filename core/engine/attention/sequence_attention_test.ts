import { assertAlmostEquals, assertEquals } from "@std/assert";
import { addAttention, NO_TOTALS } from "./attention_totals.ts";
import { type AttentionPlan, DENSE, NO_ATTENTION } from "../backend.ts";
import { SequenceAttention } from "./sequence_attention.ts";

const plan = (mass: number): AttentionPlan => ({ kind: "mass", mass, minBlocks: 4 });
const theta = (threshold: number): AttentionPlan => ({
  kind: "threshold",
  threshold,
  minBlocks: 4,
});

Deno.test("SequenceAttention keeps each position's plan, and is dense before the first", () => {
  const attention = new SequenceAttention({ policy: "mass" });
  assertEquals([attention.planAt(1000), attention.planEnd(0)], [DENSE, Infinity]);
  for (let at = 20; at < 24; at++) attention.plan(at, DENSE, "mass");
  for (let at = 24; at < 30; at++) attention.plan(at, plan(0.9), "mass");
  attention.plan(30, plan(0.8), "mass");
  attention.plan(31, DENSE, "off");
  attention.plan(32, theta(0.1), "mass");
  attention.plan(33, theta(0.1), "mass");
  const at = [0, 23, 24, 29, 30, 31, 33, 99];
  assertEquals(at.map((position) => attention.planAt(position)), [
    DENSE,
    DENSE,
    plan(0.9),
    plan(0.9),
    plan(0.8),
    DENSE,
    theta(0.1),
    theta(0.1),
  ]);
  assertEquals(at.map((position) => attention.planEnd(position)), [
    24,
    24,
    30,
    30,
    31,
    32,
    Infinity,
    Infinity,
  ]);
  assertEquals(attention.prunedFrom, 24);
});

Deno.test("SequenceAttention averages the entropies that it is told of", () => {
  const attention = new SequenceAttention({ policy: "mass" });
  for (const entropy of [1, 2, 6]) attention.observe(entropy);
  assertEquals(attention.meanEntropy, 3);
});

Deno.test("SequenceAttention says nothing of steps where attention is dense by choice", () => {
  const attention = new SequenceAttention({ policy: "off" });
  attention.charge({ ...NO_ATTENTION, bytesTotal: 8, bytesRead: 8 }, DENSE, true);
  assertEquals([attention.latest, attention.chosen], [undefined, false]);
});

Deno.test("addAttention sums, and averages the dropped mass over pruned tokens", () => {
  const stats = { ...NO_ATTENTION, blocksRead: 3, blocksTotal: 9, macs: 10, macsTotal: 40 };
  let totals = addAttention(NO_TOTALS, stats, 5, false);
  totals = addAttention(totals, { ...stats, massDropped: 0.1 }, 1, true);
  totals = addAttention(totals, { ...stats, massDropped: 0.2 }, 3, true);
  totals = addAttention(totals, stats, 2, false);
  assertEquals([totals.steps, totals.prunedSteps], [11, 4]);
  assertEquals([totals.blocksRead, totals.blocksTotal, totals.macs], [12, 36, 40]);
  assertAlmostEquals(totals.massDropped, (0.1 + 3 * 0.2) / 4, 1e-12);
});
