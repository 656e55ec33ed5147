/** What a scripted backend says of its rows of logits. */
import type { LogitStats } from "../../core/engine/backend.ts";
import { sumsOf, uncertaintyOf } from "../../core/entropic/entropy.ts";

/** All ids, best first, ties by id. */
export const ranked = (logits: Float32Array): number[] =>
  Array.from(logits.keys())
    .sort((a, b) => (logits[b] as number) - (logits[a] as number) || a - b);

export function scriptedStatistics(
  logits: Float32Array,
  endTokens: readonly number[],
  topK: number,
): LogitStats {
  const sums = sumsOf(logits);
  const { logZ, entropy, varentropy } = uncertaintyOf(sums);
  const ids = ranked(logits).slice(0, topK);
  const ends = endTokens.map((id) => Math.exp((logits[id] as number) - logZ));
  return {
    max: sums.max,
    logZ,
    entropy,
    varentropy,
    endProbability: ends.reduce((sum, p) => sum + p, 0),
    topIds: Uint32Array.from(ids),
    topLogits: Float32Array.from(ids, (id) => logits[id] as number),
  };
}
