/** Statistics of a row of logits by their definition, in double precision. */

/** At a temperature; the best tokens and the end token's probability do not heed it. */
export function exactStatistics(
  logits: Float32Array,
  endToken: number,
  topK: number,
  temperature = 1,
) {
  const max = Math.max(...logits);
  const terms = [...logits].filter((z) => z > -Infinity)
    .map((z) => (z - max) / temperature).map((d) => [d, Math.exp(d)] as const);
  const z = terms.reduce((sum, [, e]) => sum + e, 0);
  const mean = terms.reduce((sum, [d, e]) => sum + d * e, 0) / z;
  const square = terms.reduce((sum, [d, e]) => sum + d * d * e, 0) / z;
  const ids = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b).slice(0, topK);
  return {
    max,
    logZ: max + Math.log(z),
    entropy: Math.log(z) - mean,
    varentropy: square - mean * mean,
    endProbability: Math.exp(logits[endToken]! - max) / z,
    topIds: ids,
    topLogits: ids.map((id) => logits[id]!),
  };
}
