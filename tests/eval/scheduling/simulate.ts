/** Runs the real engine over recorded generations, with arrivals and steps on a virtual clock. */
import type { Policy } from "../../../core/engine/policy.ts";
import { LocalEngine } from "../../../core/engine/local_engine.ts";
import { type Machine, type Play, promptOf, TraceBackend } from "./trace_backend.ts";
import type { Trace } from "./traces.ts";

export interface Arrival {
  /** Milliseconds. */
  readonly at: number;
  readonly trace: Trace;
  readonly maxTokens: number;
}

export interface Scenario {
  /** In order of time. */
  readonly arrivals: readonly Arrival[];
  readonly machine: Machine;
  readonly kvBlocks: number;
  /** Sequences in a step. */
  readonly slots: number;
}

/** Milliseconds, of one request. */
export interface Outcome {
  readonly latency: number;
  readonly firstToken: number;
  readonly longestPause: number;
  readonly tokens: number;
}

/** @returns The outcome of each arrival, in order. */
export async function simulate(scenario: Scenario, policy: Policy): Promise<Outcome[]> {
  const { arrivals, machine, kvBlocks, slots } = scenario;
  const clock = { now: 0 };
  const plays = arrivals.map(({ trace }): Play => ({
    trace,
    longestPause: 0,
    lastToken: undefined,
  }));
  const outcomes: Outcome[] = [];
  const running: Promise<void>[] = [];
  let next = 0, live = 0;

  const submitUntil = (time: number) => {
    for (let arrival; (arrival = arrivals[next]) !== undefined && arrival.at <= time;) {
      live++;
      running.push(follow(next++, arrival));
    }
  };
  const backend = new TraceBackend(plays, kvBlocks, machine, clock, () => {
    const end = clock.now;
    submitUntil(end);
    clock.now = end;
  });
  const engine = new LocalEngine(backend, {
    policy,
    maxRunning: slots,
    maxWaiting: Infinity,
    eventBuffer: Infinity,
    hostBytes: Infinity,
    now: () => clock.now,
  });

  async function follow(index: number, { at, trace, maxTokens }: Arrival): Promise<void> {
    // The engine reads the clock as it takes the request.
    clock.now = at;
    const stream = await engine.submit({
      prompt: promptOf(index, trace),
      maxTokens,
      sampling: { temperature: 0, seed: 0n },
    });
    for await (const event of stream) {
      if (event.type !== "end") continue;
      const { queued, prefill, decode } = event.timings;
      outcomes[index] = {
        latency: queued + prefill + decode,
        firstToken: queued + prefill,
        longestPause: (plays[index] as Play).longestPause,
        tokens: event.usage.completionTokens,
      };
    }
    if (--live === 0) jump();
  }
  /** Nothing to do until the next arrival. */
  function jump(): void {
    const arrival = arrivals[next];
    if (arrival !== undefined) submitUntil(arrival.at);
  }

  jump();
  while (running.length > 0) await running.pop();
  await engine.dispose();
  return outcomes;
}
