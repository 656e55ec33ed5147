/**
 * Shannon entropy and varentropy of a next-token distribution, exactly and in one pass: the quantity
 * that every entropic policy reads (arXiv 2603.03310). Also its bounds where only the most likely
 * tokens are known. All values are in nats; a masked logit (-Infinity) contributes 0, never NaN.
 */

/** Sums over exp(logit - max), enough to get the entropy, and mergeable across parts of a row. */
export interface ExponentialSums {
  /** m, the largest logit. */
  readonly max: number;
  /** Z = sum exp(z - m). */
  readonly z: number;
  /** A = sum (z - m) exp(z - m). */
  readonly a: number;
  /** B = sum (z - m)^2 exp(z - m). */
  readonly b: number;
}

/** The sums of no logits at all; neutral in `mergeSums`. */
export const EMPTY_SUMS: ExponentialSums = { max: -Infinity, z: 0, a: 0, b: 0 };

export interface Uncertainty {
  /** log sum exp(z). Not finite when the logits hold a NaN, +Infinity, or nothing but -Infinity. */
  readonly logZ: number;
  /** H = -sum p log p. */
  readonly entropy: number;
  /** Variance of -log p under p, in nats squared. */
  readonly varentropy: number;
}

/** One pass over logits, shape [n]. A NaN or +Infinity makes the sums NaN. */
export function sumsOf(logits: ArrayLike<number>): ExponentialSums {
  let max = -Infinity, z = 0, a = 0, b = 0;
  for (let i = 0; i < logits.length; i++) {
    const logit = logits[i] as number;
    if (logit === -Infinity) continue;
    if (logit > max) {
      if (z > 0) {
        const d = max - logit;
        const scale = Math.exp(d);
        b = scale * (b + 2 * d * a + d * d * z);
        a = scale * (a + d * z);
        z *= scale;
      }
      max = logit;
    }
    const x = logit - max;
    const e = Math.exp(x);
    z += e;
    a += x * e;
    b += x * x * e;
  }
  return { max, z, a, b };
}

/** The sums of two disjoint parts of a row as if they had been summed in one pass. */
export function mergeSums(p: ExponentialSums, q: ExponentialSums): ExponentialSums {
  if (p.max === -Infinity && p.z === 0) return q;
  if (q.max === -Infinity && q.z === 0) return p;
  const [high, low] = p.max >= q.max ? [p, q] : [q, p];
  const d = low.max - high.max;
  const scale = Math.exp(d);
  return {
    max: high.max,
    z: high.z + scale * low.z,
    a: high.a + scale * (low.a + d * low.z),
    b: high.b + scale * (low.b + 2 * d * low.a + d * d * low.z),
  };
}

/** H = log Z - A/Z and V = B/Z - (A/Z)^2; rounding never makes them negative. */
export function uncertaintyOf({ max, z, a, b }: ExponentialSums): Uncertainty {
  const mean = a / z;
  return {
    logZ: max + Math.log(z),
    entropy: Math.max(0, Math.log(z) - mean),
    varentropy: Math.max(0, b / z - mean * mean),
  };
}

/** Entropy and varentropy of softmax(logits), shape [n]. */
export function uncertainty(logits: ArrayLike<number>): Uncertainty {
  return uncertaintyOf(sumsOf(logits));
}

/**
 * Bounds of the entropy when only the k most likely logits and log Z are known. With tail mass eps
 * over V - k tokens, each at most as likely as the k-th:
 * sum_topk - eps log p_k <= H <= sum_topk - eps log eps + eps log(V - k).
 *
 * @param topLogits The k largest logits, best first.
 * @param logZ log sum exp over all `vocabularySize` logits.
 */
export function entropyBounds(
  topLogits: ArrayLike<number>,
  logZ: number,
  vocabularySize: number,
): { readonly lower: number; readonly upper: number } {
  let known = 0, mass = 0, last = 0;
  for (let i = 0; i < topLogits.length; i++) {
    const logit = topLogits[i] as number;
    if (logit === -Infinity) break;
    last = logit - logZ;
    const p = Math.exp(last);
    mass += p;
    known -= p * last;
  }
  const tail = Math.max(0, 1 - mass);
  const others = vocabularySize - topLogits.length;
  if (tail === 0 || others <= 0) return { lower: known, upper: known };
  return {
    lower: known - tail * last,
    upper: known - tail * Math.log(tail) + tail * Math.log(others),
  };
}
