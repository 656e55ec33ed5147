/** What a step took, told to those whom it concerns: its sequences, the counters, the policy. */
import { addCost, NO_COST, shareCost } from "../entropic/cost.ts";
import type { StepObservation } from "../entropic/workload.ts";
import type { Backend, ForwardResult } from "./backend.ts";
import type { EngineCounters } from "./engine_counters.ts";
import type { ScheduledStep } from "./scheduled_step.ts";

/** Shares a step's cost out over its sequences. @param seconds Inside `forward`. */
export function chargeStep(
  step: ScheduledStep,
  { attention }: ForwardResult,
  seconds: number,
  backend: Backend,
  counters: EngineCounters,
): void {
  const work = step.entries.map(({ sequence, count, rows }, i) => {
    const { blocksRead = 0, blocksTotal = 0, bytesRead = 0 } = attention[i] ?? {};
    return {
      tokens: count,
      position: sequence.computed,
      rows,
      attended: blocksTotal > 0 ? blocksRead / blocksTotal : 1,
      kvBytes: bytesRead,
    };
  });
  const { weightBytes } = backend.describe();
  const shares = shareCost(backend.config, work, { weightBytes, seconds });
  step.entries.forEach(({ sequence }, i) => sequence.charge(shares[i] ?? NO_COST));
  counters.cost = shares.reduce(addCost, counters.cost);
}

/** Begins to watch a step. @returns Ends it, and answers how the step went. */
export function watchStep(step: ScheduledStep, counters: EngineCounters): () => StepObservation {
  let decodes = 0, prefillTokens = 0;
  for (const { sequence, count } of step.entries) {
    if (sequence.prefilling) prefillTokens += count;
    else decodes++;
  }
  const before = counters.tally;
  return () => {
    const after = counters.tally;
    return {
      decodes,
      prefillTokens,
      milliseconds: after.milliseconds - before.milliseconds,
      drawn: after.drawn - before.drawn,
      ended: after.ended - before.ended,
    };
  };
}
