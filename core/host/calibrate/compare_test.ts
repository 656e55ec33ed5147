import { assert, assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { type AttentionPlan, DENSE } from "../../engine/backend.ts";
import { ScriptedBackend } from "../../../tests/support/scripted_backend.ts";
import { compareWithDense, type LastStep } from "./compare.ts";
import { divergenceOf } from "./divergence.ts";

const MASS: AttentionPlan = { kind: "mass", mass: 0.9, minBlocks: 4 };
const TEXT = Uint32Array.from({ length: 200 }, (_, i) => 1 + (i * i + 3 * i) % 60);

Deno.test("compareWithDense finds no difference between dense and dense", async () => {
  const results = await compareWithDense(new ScriptedBackend(), TEXT, [64, 128], 32, [DENSE]);
  assertEquals(results.length, 2);
  for (const [comparison] of results) {
    const { kl, pplRatio, top1, bytesShare, macsShare } = divergenceOf([comparison!]);
    assertEquals([kl, pplRatio, top1, bytesShare, macsShare], [0, 1, 1, 1, 1]);
    assertEquals(comparison!.kl.length, 32);
  }
});

Deno.test("compareWithDense feeds each contender its own history on the shared prefix", async () => {
  const backend = new ScriptedBackend({ prunes: true, prune: () => {} });
  const [results] = await compareWithDense(backend, TEXT, [96], 32, [DENSE, MASS, DENSE]);
  const reference = new ScriptedBackend();
  const blockTable = [0, 1, 2, 3, 4, 5, 6];
  const losses: number[] = [];
  for (let position = 0; position < 96; position++) {
    const tokens = TEXT.subarray(position, position + 1);
    const one = { tokens, position, blockTable, attention: DENSE, output: "last" } as const;
    const { rows } = await reference.forward([one]);
    const logits = await reference.logits(0);
    if (position >= 64) losses.push(rows[0]!.logZ - logits[TEXT[position + 1]!]!);
  }
  for (const { loss, denseLoss } of results!) {
    assertEquals(loss, losses);
    assertEquals(denseLoss, losses);
  }
});

Deno.test("compareWithDense tells a contender of its latest step", async () => {
  const plans: AttentionPlan[] = [];
  const backend = new ScriptedBackend({
    prunes: true,
    onForward: (_, batch) => {
      if (batch.length > 1) plans.push(batch[1]!.attention);
    },
  });
  const seen: LastStep[] = [];
  await compareWithDense(backend, TEXT, [64], 16, [(last) => {
    seen.push(last);
    return MASS;
  }]);
  assertEquals(plans, [DENSE, ...new Array(15).fill(MASS)]);
  assertEquals(seen.map(({ context }) => context), Array.from({ length: 15 }, (_, i) => 50 + i));
  const entropies = seen.map(({ entropy }) => entropy);
  const mean = entropies.reduce((sum, entropy) => sum + entropy, 0) / 15;
  assertAlmostEquals(seen[14]!.meanEntropy, mean, 1e-9);
  assert(seen.every(({ entropy, massDropped }) => entropy > 0 && massDropped === 0));
});

Deno.test("compareWithDense refuses what does not fit", async () => {
  const refused = (lengths: number[], positions: number, why: string, contenders = [DENSE]) =>
    assertRejects(
      () => compareWithDense(new ScriptedBackend(), TEXT, lengths, positions, contenders),
      RangeError,
      why,
    );
  await refused([200], 40, "the text has 200 tokens, needed are 201");
  await refused([100], 32, "length is 100 with 32 scored");
  await refused([32], 32, "length is 32 with 32 scored");
  await refused([128, 64], 32, "do not ascend");
  await refused([192], 64, "64 KV blocks", new Array(20).fill(DENSE));
  await refused([64], 16, "too many", new Array(32).fill(DENSE));
});
