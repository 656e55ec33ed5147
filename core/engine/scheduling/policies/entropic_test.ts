import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Outcome } from "../../../../tests/eval/scheduling/drive.ts";
import { simulate } from "../../../../tests/eval/scheduling/simulate.ts";
import type { Trace } from "../../../../tests/eval/scheduling/traces.ts";
import { CLOCK_START } from "../../../entropic/clock.ts";
import { FIRST_HAZARD, NO_EVIDENCE, observeEnd } from "../../../entropic/hazard.ts";
import { FIRST_FIT } from "../../../entropic/step_time.ts";
import { FIRST_WORKLOAD, type Workload } from "../../../entropic/workload.ts";
import type { SequenceFacts } from "../policy.ts";
import { entropic, patience } from "./entropic.ts";

const evidenceOf = (ends: readonly number[]) =>
  ends.map((endProbability) => ({ endProbability, entropy: 2 })).reduce(observeEnd, NO_EVIDENCE);

const FACTS: SequenceFacts = {
  id: 1,
  arrival: 1000,
  priority: 0,
  promptTokens: 40,
  maxTokens: 256,
  generatedTokens: 0,
  uncomputedTokens: 40,
  resident: false,
  clock: CLOCK_START,
  evidence: NO_EVIDENCE,
};

const running = (endProbability: number, generatedTokens = 30): SequenceFacts => ({
  ...FACTS,
  generatedTokens,
  uncomputedTokens: 1,
  resident: true,
  evidence: evidenceOf(Array.from({ length: generatedTokens }, () => endProbability)),
});

const keyOf = (facts: SequenceFacts) => entropic().key(facts, 0, FIRST_WORKLOAD);

Deno.test("entropic runs first who will end first", () => {
  assert(keyOf(running(0.2)) < keyOf(running(0.01)));
  assert(keyOf({ ...running(0.001), maxTokens: 40 }) < keyOf(running(0.001)));
});

Deno.test("entropic gives a first token at once, then leaves a runner its place", () => {
  assert(keyOf({ ...FACTS, promptTokens: 1, uncomputedTokens: 1 }) < keyOf(running(0.001)));
  const ends = running(0.03);
  assert(keyOf(ends) < keyOf({ ...ends, resident: false }));
});

Deno.test("entropic weighs a request's priority, up to a bound", () => {
  const at = (priority: number) => keyOf({ ...FACTS, priority });
  assert(at(1) < at(0) && at(0) < at(-1));
  assertEquals(at(10), at(1e9));
});

Deno.test("entropic does not charge a swapped sequence for what host memory holds", () => {
  const lost = { ...running(0.01), resident: false, uncomputedTokens: 70 };
  const swapped = { ...lost, host: { positions: 69 } };
  assertEquals(keyOf(swapped), keyOf({ ...lost, uncomputedTokens: 1 }));
  assert(keyOf(swapped) < keyOf(lost));
});

Deno.test("entropic charges for memory where it is short", () => {
  const scarce = { ...FIRST_WORKLOAD, batch: 4, memory: { blocks: 40, scarcity: 1 } };
  const small = running(0.01), large = { ...small, promptTokens: 400 };
  const key = (facts: SequenceFacts, workload: Workload) => entropic().key(facts, 0, workload);
  assertEquals(key(large, FIRST_WORKLOAD), key(small, FIRST_WORKLOAD));
  assert(key(large, scarce) > key(small, scarce));
});

Deno.test("entropic minds a target when it is near, and lets a lost one go", () => {
  const one = running(0.02);
  const urgencyAt = (now: number) => {
    const key = (facts: SequenceFacts) => entropic().key(facts, now, FIRST_WORKLOAD);
    return key(one) - key({ ...one, latencyTarget: 5000 });
  };
  const { arrival } = one;
  const [early, near, tight, late] = [0, 3000, 4600, 5001].map((at) => urgencyAt(arrival + at));
  assert(0 < early! && early! < near! && near! < tight!, "urgency grows as time goes");
  assertEquals(late, 0, "the target is missed");
  assert(urgencyAt(arrival + 4950) < tight!, "it can hardly be met any more");
});

Deno.test("entropic lets nobody pass who comes later than its patience", () => {
  const longest = { tokens: 512, prompt: 2000 };
  const duration = fc.double({ min: 1e-3, max: 1e3, noNaN: true });
  const workload: fc.Arbitrary<Workload> = fc.record({
    time: fc.record({ step: duration, decode: duration, prefill: duration })
      .map((prices) => ({ ...FIRST_FIT, ...prices })),
    batch: fc.double({ min: 1, max: 64, noNaN: true }),
    hazard: fc.constant(FIRST_HAZARD),
    memory: fc.record({
      blocks: fc.integer({ min: 1, max: 1000 }),
      scarcity: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  });
  const facts = fc.record({
    priority: fc.double({ min: -100, max: 100, noNaN: true }),
    maxTokens: fc.integer({ min: 1, max: longest.tokens }),
    uncomputedTokens: fc.integer({ min: 1, max: longest.prompt }),
    resident: fc.boolean(),
    latencyTarget: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined }),
    seen: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }),
  }).map(({ seen, ...some }): SequenceFacts => ({
    ...FACTS,
    ...some,
    generatedTokens: Math.min(seen.length, some.maxTokens - 1),
    evidence: evidenceOf(seen.slice(0, some.maxTokens - 1)),
  }));
  const tail = fc.double({ min: 0.1, max: 1e3, noNaN: true });
  const now = fc.double({ min: 0, max: 1e7, noNaN: true });
  fc.assert(fc.property(facts, facts, workload, tail, now, (early, late, workload, tail, now) => {
    const policy = entropic(tail);
    const arrival = early.arrival + 1.000001 * patience(longest, workload, tail);
    const waits = { ...early, resident: false };
    assert(policy.key(waits, now, workload) < policy.key({ ...late, arrival }, now, workload));
  }));
});

const LONG: Trace = {
  promptTokens: 200,
  length: 300,
  ended: true,
  entropy: new Float64Array(300).fill(2),
  endProbability: new Float64Array(300).fill(1e-4),
};
const SHORT: Trace = {
  promptTokens: 1,
  length: 4,
  ended: true,
  entropy: new Float64Array(4),
  endProbability: new Float64Array(4).fill(0.5),
};
const MACHINE = { step: 4, decode: 4, prefill: 1, swap: 0.1 };

/** A long request among short ones that come faster than they can be served. */
async function besieged(tail: number, shorts: number, wishes = {}): Promise<Outcome> {
  const token = MACHINE.step / 2 + MACHINE.decode;
  const gap = 4 * token / 2 / 1.3;
  const arrivals = Array.from(
    { length: shorts },
    (_, i) =>
      i === 10
        ? { at: i * gap, trace: LONG, maxTokens: 512 }
        : { at: i * gap, trace: SHORT, maxTokens: 512, wishes },
  );
  const scenario = { arrivals, machine: MACHINE, kvBlocks: 46, slots: 2 };
  const outcomes = await simulate(scenario, entropic(tail));
  return outcomes[10]!;
}

Deno.test("entropic serves a long request in the time it states, whoever else comes", async () => {
  const shorts = 2500;
  const token = MACHINE.step / 2 + MACHINE.decode;
  const end = shorts * 4 * token / 2 / 1.3;
  const tail = 0.3;
  const workload = {
    ...FIRST_WORKLOAD,
    time: { ...FIRST_FIT, ...MACHINE },
    batch: 1, // the longest that a token can take
  };
  const wait = patience({ tokens: 512, prompt: 200 }, workload, tail);
  // Then there are those who came before, 1.3 times what can be served, and its own work, alone.
  const bound = 1.3 * wait + 300 * (MACHINE.step + MACHINE.decode) + 200 * MACHINE.prefill;
  assert(bound < 0.8 * end, "the siege outlasts the bound");
  const { latency } = await besieged(tail, shorts);
  assert(latency < bound, `${latency} ms within ${bound} ms`);
  const pressing = { priority: 10, latencyTarget: 500 };
  const { latency: pressed } = await besieged(tail, shorts, pressing);
  assert(pressed < bound, `${pressed} ms within ${bound} ms, though all others press`);
  const { latency: starved } = await besieged(1e6, shorts);
  assert(starved > 0.95 * end, "without it, the siege does");
});
