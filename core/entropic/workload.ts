/**
 * What an engine has learnt of its work and its machine, folded step by step: what steps cost, how
 * many sequences share one, and how often a token is the last. Policies price sequences by it.
 */
import { FIRST_FIT, observeStepTime, type StepTimeFit } from "./step_time.ts";

/** One step as it went. */
export interface StepObservation {
  /** Sequences that computed one token to draw the next. */
  readonly decodes: number;
  readonly prefillTokens: number;
  readonly milliseconds: number;
  /** Tokens drawn, and how many of them ended their sequence. */
  readonly drawn: number;
  readonly ended: number;
}

export interface Workload {
  readonly time: StepTimeFit;
  /** Sequences that decode in a step, averaged over the latest steps; at least 1. */
  readonly batch: number;
  readonly drawn: number;
  readonly ended: number;
}

/** Assumed before anything is seen: one end in 128 tokens. */
export const FIRST_WORKLOAD: Workload = { time: FIRST_FIT, batch: 1, drawn: 128, ended: 1 };

/** Tokens after which the count of ends begins to forget. */
const MEMORY = 100_000;

export function observeStep(workload: Workload, step: StepObservation): Workload {
  const keep = Math.min(1, MEMORY / (workload.drawn + step.drawn));
  return {
    time: observeStepTime(workload.time, step),
    batch: 0.98 * workload.batch + 0.02 * Math.max(1, step.decodes),
    drawn: keep * (workload.drawn + step.drawn),
    ended: keep * (workload.ended + step.ended),
  };
}

/** Ends a token, over all sequences. */
export function endRate({ drawn, ended }: Workload): number {
  return ended / drawn;
}

/** Milliseconds of a decoded token: its own, and its share of what the batch has in common. */
export function tokenTime({ time, batch }: Workload): number {
  return time.step / batch + time.decode;
}
