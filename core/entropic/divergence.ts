/** How far a distribution has moved from another: what pruned attention is judged by. */
import { uncertainty } from "./entropy.ts";

/**
 * KL(p || q) = sum p (log p - log q) in nats, of the softmaxes of two rows of logits; what p cannot
 * draw adds nothing, and what only q cannot draw makes it infinite.
 *
 * @param reference Logits of p, shape [vocabularySize].
 * @param other Logits of q, of the same shape.
 * @param logZ Of the reference, and of the other, where they are known; 0 for log-probabilities.
 * @returns NaN where a row is no distribution.
 */
export function divergence(
  reference: ArrayLike<number>,
  other: ArrayLike<number>,
  logZ = uncertainty(reference).logZ,
  otherLogZ = uncertainty(other).logZ,
): number {
  if (!Number.isFinite(logZ) || !Number.isFinite(otherLogZ)) return NaN;
  let sum = 0;
  for (let id = 0; id < reference.length; id++) {
    const logp = (reference[id] as number) - logZ;
    if (logp === -Infinity) continue;
    sum += Math.exp(logp) * (logp - ((other[id] as number) - otherLogZ));
  }
  // Rounding can take the sum of equal rows below 0, where no divergence is.
  return Math.max(0, sum);
}
