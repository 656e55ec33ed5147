/**
 * How long a policy lets a sequence wait before nobody who comes later may pass it, in units that fit
 * any machine: the time of a run of `RUN` tokens at the present speed. The knob `tail` counts them:
 * fewer is fairer to the longest waits, more is better for the mean.
 */
import { tokenTime, type Workload } from "../../../entropic/workload.ts";
import type { SequenceFacts } from "../policy.ts";

/** Tokens of a long answer. */
const RUN = 384;

export const DEFAULT_TAIL = 100;

/** Milliseconds of a long answer. */
export function runTime(workload: Workload): number {
  return RUN * tokenTime(workload);
}

/** Tokens whose KV has to be computed: it is in neither blocks nor host memory; >= 1. */
export function missingTokens(
  { promptTokens, generatedTokens, uncomputedTokens, host }: SequenceFacts,
): number {
  const stored = host?.positions ?? 0;
  return Math.min(uncomputedTokens, promptTokens + generatedTokens - stored);
}

/** Milliseconds of prompt tokens beyond the one that decoding would compute anyway. */
export function prefillTime(missing: number, { time }: Workload): number {
  return time.prefill * Math.max(0, missing - 1);
}
