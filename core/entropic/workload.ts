/**
 * What an engine has learnt of its work and its machine, folded step by step: what steps cost, how
 * many sequences share one, and when sequences end. Policies price sequences by it.
 */
import { type Draw, FIRST_HAZARD, type HazardModel, observeDraw } from "./hazard.ts";
import { FIRST_FIT, observeStepTime, type StepTimeFit } from "./step_time.ts";

/** One step as it went. */
export interface StepObservation {
  /** Sequences that computed one token to draw the next. */
  readonly decodes: number;
  readonly prefillTokens: number;
  readonly milliseconds: number;
  /** The tokens drawn that could have been an end, each but the first of its sequence. */
  readonly draws: readonly Draw[];
}

export interface Workload {
  readonly time: StepTimeFit;
  /** Sequences that decode in a step, averaged over the latest steps; at least 1. */
  readonly batch: number;
  readonly hazard: HazardModel;
}

export const FIRST_WORKLOAD: Workload = { time: FIRST_FIT, batch: 1, hazard: FIRST_HAZARD };

export function observeStep(workload: Workload, step: StepObservation): Workload {
  return {
    time: observeStepTime(workload.time, step),
    batch: 0.98 * workload.batch + 0.02 * Math.max(1, step.decodes),
    hazard: step.draws.reduce(observeDraw, workload.hazard),
  };
}

/** Milliseconds of a decoded token: its own, and its share of what the batch has in common. */
export function tokenTime({ time, batch }: Workload): number {
  return time.step / batch + time.decode;
}
