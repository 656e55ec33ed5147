/** From a row's sums, as the GPU leaves them in f32, to the statistics of the contract. */
import type { DrawnToken, LogitStats, Uncertainty } from "../core/engine/backend.ts";
import { SUMMARY_DRAWN, SUMMARY_HEADER, summaryWords } from "./kernels/row_summary.ts";

/** H = log Z - A / Z and V = B / Z - (A / Z)^2. */
export function uncertaintyOf(z: number, a: number, b: number): Uncertainty {
  const mean = a / z;
  return {
    entropy: Math.max(0, Math.log(z) - mean),
    varentropy: Math.max(0, b / z - mean * mean),
  };
}

/** @param words Summaries, row after row. */
export function statisticsOf(words: Uint32Array, row: number, topK: number): LogitStats {
  const size = summaryWords(topK);
  const own = words.slice(row * size, (row + 1) * size);
  const floats = new Float32Array(own.buffer);
  const [max = NaN, z = NaN, a = NaN, b = NaN, end = NaN] = floats;
  return {
    max,
    logZ: max + Math.log(z),
    ...uncertaintyOf(z, a, b),
    endProbability: end / z,
    topIds: own.slice(SUMMARY_HEADER, SUMMARY_HEADER + topK),
    topLogits: floats.slice(SUMMARY_HEADER + topK),
  };
}

/** The token drawn from a row, as its summary has it; `undefined` where none is possible. */
export function drawnOf(words: Uint32Array, row: number, topK: number): DrawnToken | undefined {
  const at = row * summaryWords(topK) + SUMMARY_DRAWN;
  const [token = 0, bits = 0] = words.subarray(at, at + 2);
  const [logit = NaN] = new Float32Array(Uint32Array.of(bits).buffer);
  return logit === -Infinity ? undefined : { token, logit };
}
