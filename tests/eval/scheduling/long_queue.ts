/** A scheduler with a long queue behind full slots, to see what a step of it costs. */
import { BlockPool } from "../../../core/engine/kv/block_pool.ts";
import { EventQueue } from "../../../core/engine/event_queue.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";
import { Scheduler } from "../../../core/engine/scheduling/scheduler.ts";
import { Sequence } from "../../../core/engine/sequence.ts";

/** @returns `running` sequences that decode, and `waiting` that find no slot. */
export function queueOf(waiting: number, running: number, policy: Policy): Scheduler {
  const scheduler = new Scheduler(new BlockPool(4 * running), {
    policy,
    maxRunning: running,
    stepTokens: 2 * running,
    prefillChunk: running,
    maxOutputRows: running,
    hostBytes: 0,
    blockBytes: 1,
  });
  const add = (id: number) => {
    const prompt = [id, 1, 2];
    const maxTokens = id <= running ? 40 : 400;
    const request = { prompt, maxTokens, sampling: { seed: 0n } };
    const events = new EventQueue(Infinity, { drained: () => {}, abandoned: () => {} });
    const sequence = new Sequence(id, request, { events, arrival: id, endTokens: [] });
    scheduler.add(sequence, id);
  };
  for (let id = 1; id <= running; id++) add(id);
  for (let left = running; left > 0;) {
    for (const { sequence, count } of scheduler.schedule(0).entries) {
      scheduler.commit(sequence, count);
      if (sequence.uncomputedTokens > 0) continue;
      // The first token makes it one that decodes, and that is about to end.
      sequence.append(3);
      sequence.observe({ ...STATS, endProbability: 0.9 });
      left--;
    }
  }
  for (let id = running + 1; id <= running + waiting; id++) add(id);
  return scheduler;
}

const STATS = {
  max: 0,
  logZ: 0,
  entropy: 1,
  varentropy: 1,
  topIds: Uint32Array.of(3),
  topLogits: Float32Array.of(0),
};
