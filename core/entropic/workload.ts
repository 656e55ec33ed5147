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

/** How KV memory fared in a step. */
export interface MemoryObservation {
  /** Blocks in all. */
  readonly blocks: number;
  /** Whether somebody wanted for some. */
  readonly short: boolean;
}

export interface Workload {
  readonly time: StepTimeFit;
  /** Sequences that decode in a step, averaged over the latest steps; at least 1. */
  readonly batch: number;
  readonly hazard: HazardModel;
  readonly memory: {
    readonly blocks: number;
    /** Share of the latest steps in which blocks were short. */
    readonly scarcity: number;
  };
}

export const FIRST_WORKLOAD: Workload = {
  time: FIRST_FIT,
  batch: 1,
  hazard: FIRST_HAZARD,
  memory: { blocks: Infinity, scarcity: 0 },
};

export function observeStep(
  workload: Workload,
  step: StepObservation,
  { blocks, short }: MemoryObservation,
): Workload {
  return {
    time: observeStepTime(workload.time, step),
    batch: average(workload.batch, Math.max(1, step.decodes)),
    hazard: step.draws.reduce(observeDraw, workload.hazard),
    memory: { blocks, scarcity: average(workload.memory.scarcity, Number(short)) },
  };
}

/** Of the latest 50 steps or so. */
function average(past: number, present: number): number {
  return 0.98 * past + 0.02 * present;
}

/** Milliseconds of a decoded token: its own, and its share of what the batch has in common. */
export function tokenTime({ time, batch }: Workload): number {
  return time.step / batch + time.decode;
}

/** Milliseconds of a whole step: what a sequence that runs waits for each of its tokens. */
export function stepTime({ time, batch }: Workload): number {
  return time.step + time.decode * batch;
}

/**
 * How much of the price is by memory where blocks are always short. More is better for the mean where
 * prompts differ in length and cost little, and worse for the longest waits.
 */
const MEMORY_WEIGHT = 0.25;
/** The most blocks that count, in times what is there for each sequence of a batch. */
const MOST_SHARES = 4;
export const MOST_MEMORY_PRICE = 1 + MEMORY_WEIGHT * (MOST_SHARES - 1);

/**
 * What the time of a sequence that holds so many blocks is worth, where memory bounds the batch: the
 * price of a token is its share of the step, and where blocks are short those are what steps are
 * shared by. 1 where they are not, or for a sequence that holds its share.
 *
 * @returns In [3/4, MOST_MEMORY_PRICE].
 */
export function memoryPrice(held: number, { memory, batch }: Workload): number {
  const shares = Math.min(MOST_SHARES, held * batch / memory.blocks);
  return 1 + MEMORY_WEIGHT * memory.scarcity * (shares - 1);
}
