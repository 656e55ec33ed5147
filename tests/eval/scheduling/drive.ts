/**
 * Drives the real engine with requests that arrive at given times, on a clock that its backend moves:
 * by a model of a machine, or by the time that a real one took.
 */
import type { Backend } from "../../../core/engine/backend.ts";
import type { SequenceRequest } from "../../../core/engine/engine.ts";
import { LocalEngine } from "../../../core/engine/local_engine.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";

/** Milliseconds since the start of the run. */
export interface VirtualClock {
  now: number;
}

export interface Job {
  /** Milliseconds. */
  readonly at: number;
  readonly request: SequenceRequest;
}

/** Milliseconds, of one request. */
export interface Outcome {
  readonly latency: number;
  readonly firstToken: number;
  /** Longest time between two of its tokens. */
  readonly longestPause: number;
  readonly tokens: number;
}

/** @param onStep To be called at the end of each forward, with the clock moved. */
export type OpenBackend = (clock: VirtualClock, onStep: () => void) => Backend;

/**
 * @param jobs In order of time.
 * @param slots Sequences in a step.
 * @returns The outcome of each job, in order.
 */
export async function drive(
  jobs: readonly Job[],
  open: OpenBackend,
  policy: Policy,
  slots: number,
): Promise<Outcome[]> {
  const clock: VirtualClock = { now: 0 };
  const outcomes: Outcome[] = [];
  const running: Promise<void>[] = [];
  let next = 0, live = 0;

  const submitUntil = (time: number) => {
    for (let job; (job = jobs[next]) !== undefined && job.at <= time;) {
      live++;
      running.push(follow(next++, job));
    }
  };
  const backend = open(clock, () => {
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

  async function follow(index: number, { at, request }: Job): Promise<void> {
    // The engine reads the clock as it takes the request.
    clock.now = at;
    const stream = await engine.submit(request);
    let longestPause = 0, last: number | undefined;
    for await (const event of stream) {
      if (event.type === "token") {
        longestPause = Math.max(longestPause, clock.now - (last ?? clock.now));
        last = clock.now;
      } else if (event.type === "end") {
        const { queued, prefill, decode } = event.timings;
        const latency = queued + prefill + decode, tokens = event.usage.completionTokens;
        outcomes[index] = { latency, firstToken: queued + prefill, longestPause, tokens };
      }
    }
    if (--live === 0) jump();
  }
  /** Nothing to do until the next arrival. */
  function jump(): void {
    const job = jobs[next];
    if (job !== undefined) submitUntil(job.at);
  }

  jump();
  while (running.length > 0) await running.pop();
  await engine.dispose();
  return outcomes;
}
