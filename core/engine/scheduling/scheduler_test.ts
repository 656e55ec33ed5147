import { assertEquals } from "@std/assert";
import { BlockPool } from "../kv/block_pool.ts";
import { EventQueue } from "../event_queue.ts";
import { createPolicy } from "./policies/mod.ts";
import { Scheduler } from "./scheduler.ts";
import { Sequence } from "../sequence.ts";

const CHUNK = 16;

/** A scheduler that computes `CHUNK` tokens a step, and sequences whose tokens are all alike. */
function setUp() {
  const scheduler = new Scheduler(new BlockPool(40), {
    policy: createPolicy("fcfs"),
    maxRunning: 8,
    stepTokens: CHUNK,
    prefillChunk: CHUNK,
    maxOutputRows: 8,
    hostBytes: 0,
    blockBytes: 1,
  });
  let id = 0;
  const newSequence = (tokens: number) => {
    const events = new EventQueue(Infinity, { drained: () => {}, abandoned: () => {} });
    const prompt = new Uint32Array(tokens).fill(7);
    const request = { prompt, maxTokens: 50, sampling: { seed: 0n } };
    return new Sequence(++id, request, { events, arrival: id, endTokens: [] });
  };
  const step = () => {
    for (const { sequence, count } of scheduler.schedule(0).entries) {
      scheduler.commit(sequence, count);
    }
  };
  return { scheduler, newSequence, step };
}

Deno.test("Scheduler lets a prompt wait for blocks that one ahead of it is about to compute", () => {
  const { scheduler, newSequence, step } = setUp();
  const leader = newSequence(100), follower = newSequence(90);
  scheduler.add(leader, 0);
  scheduler.add(follower, 0);
  step();
  assertEquals([leader.computed, follower.resident], [CHUNK, false]);
  while (leader.prefilling) step();
  step();
  assertEquals([follower.resident, follower.cachedTokens], [true, 80]);
});

Deno.test("Scheduler lets no prompt wait for blocks that are pruned, which it could never share", () => {
  const { scheduler, newSequence, step } = setUp();
  const leader = newSequence(100), follower = newSequence(90);
  // As after a preemption: what is computed again was generated, from token 40 on with pruning.
  leader.attention.plan(40, { kind: "mass", mass: 0.5, minBlocks: 4 }, "mass");
  scheduler.add(leader, 0);
  scheduler.add(follower, 0);
  step();
  assertEquals(follower.resident, false, "the second block is to be shared");
  step();
  step();
  assertEquals([leader.prefilling, follower.resident, follower.cachedTokens], [true, true, 32]);
});
