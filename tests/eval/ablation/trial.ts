/** One run of a workload under one policy, through the whole engine, timed by processor time. */
import type { Backend } from "../../../core/engine/backend.ts";
import type { EndEvent, SequenceRequest, TokenEvent } from "../../../core/engine/engine.ts";
import { LocalEngine } from "../../../core/engine/local_engine.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";
import { ProcessorClock } from "./processor_clock.ts";
import { type StoredPrefix, withPrefix } from "./stored_prefix.ts";

/** A request and its time, in milliseconds from the start of the run. */
export interface Job {
  readonly at: number;
  readonly request: SequenceRequest;
}

/** One request's answer. Times are milliseconds from the start of the run. */
export interface Answer {
  readonly arrival: number;
  readonly tokens: readonly TokenEvent[];
  /** When each token came out, shape [tokens.length]. */
  readonly times: readonly number[];
  readonly end: EndEvent;
}

export interface Trial {
  /** In order of the jobs. */
  readonly answers: readonly Answer[];
  /** Milliseconds of processor time from the first arrival to the last token, pauses included. */
  readonly duration: number;
  /** Seconds by the clock on the wall. */
  readonly wallSeconds: number;
}

/**
 * @param jobs In order of time.
 * @param prefix What the prefix cache holds at the start.
 */
export async function runTrial(
  backend: Backend,
  prefix: StoredPrefix,
  jobs: readonly Job[],
  policy: Policy,
  slots: number,
): Promise<Trial> {
  const clock = new ProcessorClock();
  let arrive = () => {};
  const engine = new LocalEngine(withPrefix(backend, prefix, () => arrive()), {
    policy,
    maxRunning: slots,
    maxWaiting: Infinity,
    eventBuffer: Infinity,
    now: clock.now,
  });
  await fillCache(engine, prefix);
  const start = clock.now(), wallStart = performance.now();
  const answers: Answer[] = [], following: Promise<void>[] = [];
  let next = 0, live = 0;
  arrive = () => {
    for (let job; (job = jobs[next]) !== undefined && start + job.at <= clock.now(); next++) {
      live++;
      following.push(follow(next, job));
    }
  };
  async function follow(index: number, { at, request }: Job): Promise<void> {
    const tokens: TokenEvent[] = [], times: number[] = [];
    for await (const event of await clock.at(start + at, () => engine.submit(request))) {
      if (event.type === "token") {
        tokens.push(event);
        times.push(clock.now() - start);
      } else if (event.type === "end") answers[index] = { arrival: at, tokens, times, end: event };
    }
    live--;
    if (live === 0) idle();
  }
  /** Nothing to do until the next arrival. */
  function idle(): void {
    const job = jobs[next];
    if (job === undefined) return;
    clock.skipTo(start + job.at);
    arrive();
  }
  idle();
  while (following.length > 0) await following.pop();
  const trial = {
    answers,
    duration: clock.now() - start,
    wallSeconds: (performance.now() - wallStart) / 1000,
  };
  await engine.dispose();
  return trial;
}

/** Lets the engine prefill the document. */
async function fillCache(engine: LocalEngine, { tokens }: StoredPrefix): Promise<void> {
  if (tokens.length === 0) return;
  // One token more, for the last token of a prompt is never taken from the cache.
  const prompt = Uint32Array.of(...tokens, tokens[0] as number);
  for await (const _ of await engine.submit({ prompt, sampling: { seed: 0n }, maxTokens: 0 }));
}
