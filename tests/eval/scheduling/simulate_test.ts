import { assertEquals } from "@std/assert";
import { createPolicy } from "../../../core/engine/scheduling/policies/mod.ts";
import { fcfs } from "../../../core/engine/scheduling/policy.ts";
import { arrivalsOf } from "./arrivals.ts";
import { oracleSrpt } from "./oracle.ts";
import { simulate } from "./simulate.ts";
import { restore, store, type Trace } from "./traces.ts";

const MACHINE = { step: 6, decode: 5, prefill: 4, swap: 0.1 };

const traceOf = (promptTokens: number, length: number, ended = true): Trace => ({
  promptTokens,
  length,
  ended,
  entropy: new Float64Array(length).fill(1),
  endProbability: new Float64Array(length).fill(0.01),
});

Deno.test("simulate times a request as the machine's model says", async () => {
  const arrivals = [{ at: 50, trace: traceOf(10, 3), maxTokens: 100 }];
  const scenario = { arrivals, machine: MACHINE, kvBlocks: 64, slots: 8 };
  // A prompt of 10, then a step for each of the 3 tokens; the last of them draws the end.
  const firstToken = 6 + 10 * 4, step = 6 + 5;
  assertEquals(await simulate(scenario, fcfs), [
    { latency: firstToken + 3 * step, firstToken, longestPause: step, tokens: 3 },
  ]);
});

Deno.test("simulate lets arrivals in while others run, and after pauses", async () => {
  const long = traceOf(1, 10, false);
  const arrivals = [0, 20, 5000].map((at) => ({ at, trace: long, maxTokens: 10 }));
  const scenario = { arrivals, machine: MACHINE, kvBlocks: 64, slots: 8 };
  const [first, second, third] = await simulate(scenario, fcfs);
  assertEquals(third?.latency, 10 * 11, "alone: a step for each token");
  // The second is let in with the third step and shares 8 of them.
  assertEquals(first?.latency, 2 * 11 + 8 * 16);
  assertEquals(second?.firstToken, 2 * 11 - 20 + 16);
});

Deno.test("simulate gives the same outcomes for the same seed, under every policy", async () => {
  const traces = [3, 20, 90].map((length) => traceOf(8, length));
  const demand = { count: 40, load: 1, shape: 0.5, maxTokens: [16, 64] };
  const arrivals = arrivalsOf(traces, demand, MACHINE, 4, 9);
  const scenario = { arrivals, machine: MACHINE, kvBlocks: 24, slots: 4 };
  for (const policy of [createPolicy("entropic"), createPolicy("mlfq"), oracleSrpt(arrivals)]) {
    const outcomes = await simulate(scenario, policy);
    assertEquals(
      outcomes.map(({ tokens }) => tokens),
      arrivals.map(({ trace, maxTokens }) => Math.min(trace.length, maxTokens)),
    );
    assertEquals(await simulate(scenario, policy), outcomes, policy.name);
  }
});

Deno.test("a trace survives storing, to the precision of a byte", () => {
  const trace: Trace = {
    ...traceOf(7, 3),
    entropy: Float64Array.of(0, 1.25, 12.75),
    endProbability: Float64Array.of(0, 1, Math.exp(-3.2)),
  };
  assertEquals(restore(store(trace)), trace);
});
