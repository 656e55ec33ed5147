import { assert, assertEquals, assertThrows } from "@std/assert";
import { CLOCK_START } from "../../../entropic/clock.ts";
import { NO_EVIDENCE } from "../../../entropic/hazard.ts";
import { FIRST_FIT } from "../../../entropic/step_time.ts";
import { FIRST_WORKLOAD } from "../../../entropic/workload.ts";
import type { Policy, SequenceFacts } from "../policy.ts";
import { level, mlfq } from "./mlfq.ts";
import { createPolicy, POLICIES, type PolicyName } from "./mod.ts";
import { paper } from "./paper.ts";
import { runTime } from "./patience.ts";

const FACTS: SequenceFacts = {
  id: 1,
  arrival: 0,
  priority: 0,
  promptTokens: 10,
  maxTokens: 100,
  generatedTokens: 0,
  uncomputedTokens: 10,
  resident: false,
  clock: CLOCK_START,
  evidence: NO_EVIDENCE,
};

/** A token takes 10 ms, a prompt token 1 ms. */
const WORKLOAD = {
  ...FIRST_WORKLOAD,
  batch: 4,
  time: { ...FIRST_FIT, step: 8, decode: 8, prefill: 1 },
};

const keyOf = (policy: Policy, facts: Partial<SequenceFacts>, now = 0) =>
  policy.key({ ...FACTS, ...facts }, now, WORKLOAD);

Deno.test("createPolicy makes each policy under its name", () => {
  for (const name of POLICIES) assertEquals(createPolicy(name, 50).name, name);
});

Deno.test("createPolicy refuses other names and tails, and says what is allowed", () => {
  assertThrows(() => createPolicy("lifo" as PolicyName), RangeError, POLICIES.join(", "));
  for (const tail of [0, -1, NaN, Infinity]) {
    assertThrows(() => createPolicy("entropic", tail), RangeError, "above 0");
  }
});

Deno.test("sjf runs first whose request allows the fewest more tokens", () => {
  const sjf = createPolicy("sjf");
  assert(keyOf(sjf, { maxTokens: 50, generatedTokens: 30 }) < keyOf(sjf, { maxTokens: 25 }));
});

Deno.test("level goes down with each quantum used, each twice as long", () => {
  const levels = [0, 7, 8, 23, 24, 55, 56].map((served) => level(0, served, 8));
  assertEquals(levels, [0, 0, 1, 1, 2, 2, 3]);
});

Deno.test("level lets a long prompt join where its quantum fits", () => {
  assertEquals([8, 9, 16, 17, 100].map((prompt) => level(prompt, 0, 8)), [0, 1, 1, 2, 4]);
});

Deno.test("mlfq keeps to the order of arrival within a level, and frees who waited too long", () => {
  const policy = mlfq(2);
  assertEquals(keyOf(policy, { id: 5 }), keyOf(policy, { id: 9, arrival: 500 }));
  const long = { generatedTokens: 80, uncomputedTokens: 1 };
  assert(keyOf(policy, long) > keyOf(policy, {}));
  const late = 2 * runTime(WORKLOAD) + 81 * 10 + 10;
  assert(keyOf(policy, long, late) < keyOf(policy, {}));
});

Deno.test("paper prefers fast falls of entropy for their cost, within its bound", () => {
  const policy = paper();
  const falling = (pace: number, more: Partial<SequenceFacts> = {}) =>
    keyOf(policy, { uncomputedTokens: 1, clock: { ...CLOCK_START, pace }, ...more });
  assert(falling(1) < falling(0.2));
  assert(falling(1) < falling(1, { uncomputedTokens: 50 }));
  assertEquals(falling(5), falling(500));
});

Deno.test("paper puts a waiter before any fresh arrival after pi_max / alpha", () => {
  const policy = paper(3);
  const wait = 3 * runTime(WORKLOAD);
  const resolved = { uncomputedTokens: 1, clock: { ...CLOCK_START, pace: 0 } };
  const best = { uncomputedTokens: 1, arrival: wait };
  assert(
    keyOf(policy, resolved, 1.01 * wait) <
      keyOf(policy, { ...best, arrival: 1.01 * wait }, 1.01 * wait),
  );
  assert(
    keyOf(policy, resolved, 0.99 * wait) >
      keyOf(policy, { ...best, arrival: 0.99 * wait }, 0.99 * wait),
  );
});
