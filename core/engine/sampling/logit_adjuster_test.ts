import { assert, assertAlmostEquals, assertEquals, assertFalse } from "@std/assert";
import type { SamplingParams, SequenceRequest } from "../engine.ts";
import { LogitAdjuster } from "./logit_adjuster.ts";

function adjusterOf(
  sampling: Omit<SamplingParams, "seed">,
  fields: Partial<SequenceRequest> = {},
): LogitAdjuster {
  return new LogitAdjuster(
    { prompt: [1, 2], sampling: { seed: 0n, ...sampling }, maxTokens: 9, ...fields },
    new Set([0, 9]),
  );
}

Deno.test("LogitAdjuster is neutral unless asked", () => {
  const adjuster = adjusterOf({});
  adjuster.observe(3);
  assert(adjuster.neutral);
  assertEquals(adjuster.adjust(3, 1.5), 1.5);
});

Deno.test("LogitAdjuster penalizes repetition of prompt and generated tokens by sign", () => {
  const adjuster = adjusterOf({ repetitionPenalty: 2 });
  assertFalse(adjuster.neutral);
  adjuster.observe(3);
  assertEquals([1, 2, 3, 4].map((id) => adjuster.adjust(id, 4)), [2, 2, 2, 4]);
  assertEquals(adjuster.adjust(1, -4), -8);
  assertEquals(adjuster.adjust(1, -Infinity), -Infinity);
});

Deno.test("LogitAdjuster subtracts presence once and frequency each time, of generated tokens", () => {
  const adjuster = adjusterOf({ presencePenalty: 1, frequencyPenalty: 0.25 });
  for (const id of [3, 3, 4]) adjuster.observe(id);
  assertFalse(adjuster.neutral);
  assertEquals([1, 3, 4, 5].map((id) => adjuster.adjust(id, 0)), [0, -1.5, -1.25, 0]);
});

Deno.test("LogitAdjuster counts a prompt token as generated once it is", () => {
  const adjuster = adjusterOf({ repetitionPenalty: 2, presencePenalty: 1 });
  assertEquals(adjuster.adjust(1, 4), 2);
  adjuster.observe(1);
  assertEquals(adjuster.adjust(1, 4), 1);
});

Deno.test("LogitAdjuster applies the bias before the penalties", () => {
  const adjuster = adjusterOf({ repetitionPenalty: 2, logitBias: [[1, 3]] });
  assertEquals(adjuster.adjust(1, -1), 1);
});

Deno.test("LogitAdjuster bans stop tokens until minTokens are generated", () => {
  const adjuster = adjusterOf({}, { minTokens: 2 });
  adjuster.observe(3);
  assertEquals(adjuster.adjust(9, 5), -Infinity);
  assertFalse(adjuster.neutral);
  adjuster.observe(3);
  assertEquals(adjuster.adjust(9, 5), 5);
  assert(adjuster.neutral);
});

Deno.test("LogitAdjuster knows from which token on it is neutral", () => {
  assertEquals(adjusterOf({}).neutralFrom, 0);
  assertEquals(adjusterOf({}, { minTokens: 2 }).neutralFrom, 2);
  for (const sampling of [{ presencePenalty: 1 }, { logitBias: [[1, 3]] as const }]) {
    assertEquals(adjusterOf(sampling, { minTokens: 2 }).neutralFrom, Infinity);
  }
});

Deno.test("LogitAdjuster knows when a token out of sight may have been raised", () => {
  assertFalse(adjusterOf({ logitBias: [[1, -5]], repetitionPenalty: 2 }).mayRaiseOutside([]));
  assertFalse(adjusterOf({ logitBias: [[1, 5]] }).mayRaiseOutside(Uint32Array.of(1)));
  assert(adjusterOf({ logitBias: [[1, 5]] }).mayRaiseOutside(Uint32Array.of(2)));
  assert(adjusterOf({ repetitionPenalty: 0.9 }).mayRaiseOutside([]));
  assert(adjusterOf({ presencePenalty: -1 }).mayRaiseOutside([]));
  assert(adjusterOf({ frequencyPenalty: -1 }).mayRaiseOutside([]));
});

Deno.test("LogitAdjuster.adjustAll equals adjust on every token", () => {
  const adjuster = adjusterOf(
    { repetitionPenalty: 1.5, frequencyPenalty: 0.5, logitBias: [[4, 2], [5, -Infinity]] },
    { minTokens: 5 },
  );
  for (const id of [3, 3, 4]) adjuster.observe(id);
  const logits = Float32Array.from({ length: 12 }, (_, id) => id - 5);
  for (const [id, logit] of adjuster.adjustAll(logits).entries()) {
    assertAlmostEquals(logit, adjuster.adjust(id, logits[id]!), 1e-6);
  }
});

Deno.test("LogitAdjuster lists each token that it touches once, and adjusts those alone", () => {
  const given = { logitBias: [[3, 1], [9, -1]], presencePenalty: 1 } as const;
  const adjuster = adjusterOf(given, { minTokens: 3 });
  for (const id of [3, 5, 3]) adjuster.observe(id);
  assertEquals([...adjuster.touched()].sort(), [3, 5, 9]);
  const touched = { ids: adjuster.touched(), logits: new Float32Array(3) };
  const { ids, logits } = adjuster.adjustSome(touched);
  assertEquals(ids, touched.ids);
  assertEquals([...logits], [...ids].map((id) => adjuster.adjust(id, 0)));
  const banning = adjusterOf({ logitBias: given.logitBias }, { minTokens: 3 });
  banning.observe(5);
  assertEquals([...banning.touched()].sort(), [0, 3, 9]);
  assertEquals(adjusterOf({}).touched().length, 0);
});
