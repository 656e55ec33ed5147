/**
 * Draws the next token. The stages come in llama.cpp's order: bias and penalties, top_k, top_p
 * (arXiv 1904.09751), min_p (arXiv 2407.01082), then temperature; so the filters see the distribution
 * at temperature 1. Pure: the random number is an argument.
 *
 * Every stage works on candidates in rank order and on bounds for the tokens behind them. Where the
 * bounds leave a choice open, the answer is `undefined`, and the backend has to draw: `Backend.draw`.
 */
import type { LogitStats, TokenLogits } from "../backend.ts";
import {
  type Bounds,
  type Candidates,
  candidatesFromStats,
  firstOf,
  weight,
} from "./candidates.ts";
import type { SamplingParams } from "../engine.ts";
import type { LogitAdjuster } from "./logit_adjuster.ts";

/**
 * The next token, if the statistics of its row settle it.
 *
 * @param u Random number in [0, 1).
 * @param touched Raw logits of the tokens that the adjuster touches; with them more rows are settled.
 */
export function sampleFromStats(
  sampling: SamplingParams,
  stats: LogitStats,
  adjuster: LogitAdjuster,
  vocabularySize: number,
  u: number,
  touched?: TokenLogits,
): number | undefined {
  if (isGreedy(sampling) && adjuster.neutral) return stats.topIds[0];
  const candidates = candidatesFromStats(stats, adjuster, vocabularySize, touched);
  return candidates === undefined ? undefined : choose(candidates, sampling, u);
}

function isGreedy(sampling: SamplingParams): boolean {
  return sampling.temperature === 0;
}

function choose(candidates: Candidates, sampling: SamplingParams, u: number): number | undefined {
  if (candidates.count === 0) return undefined;
  if (isGreedy(sampling)) return candidates.ids[0];
  const first = keepFirst(candidates, sampling.topK ?? 0);
  const nucleus = first && keepMass(first, sampling.topP ?? 1);
  const likely = nucleus && keepLikely(nucleus, sampling.minP ?? 0);
  return likely && draw(likely, sampling.temperature ?? 1, u);
}

/** top_k: the k most likely; 0 keeps all. */
function keepFirst(candidates: Candidates, k: number): Candidates | undefined {
  if (k === 0 || k >= candidates.count + candidates.others) return candidates;
  return k <= candidates.count ? firstOf(candidates, k) : undefined;
}

/** top_p: the fewest, best first, whose mass reaches p of the whole. */
function keepMass(candidates: Candidates, p: number): Candidates | undefined {
  if (p >= 1) return candidates;
  const weights = weightsOf(candidates, 1);
  const others = candidates.othersMass(1);
  const index = agreed(weights, others, (sum, total) => sum >= p * total);
  if (index !== undefined) return firstOf(candidates, index + 1);
  // Rounding may leave the sum of all just short of p.
  return others.high === 0 ? candidates : undefined;
}

/** min_p: those at least m times as likely as the best. */
function keepLikely(candidates: Candidates, m: number): Candidates | undefined {
  if (m <= 0) return candidates;
  const threshold = (candidates.logits[0] as number) + Math.log(m);
  let count = 1;
  while (count < candidates.count && (candidates.logits[count] as number) >= threshold) count++;
  const mayGoOn = count === candidates.count && candidates.others > 0 &&
    candidates.ceiling >= threshold;
  return mayGoOn ? undefined : firstOf(candidates, count);
}

/** The token where the cumulated weights, in rank order, pass u of their sum. */
function draw(candidates: Candidates, temperature: number, u: number): number | undefined {
  const weights = weightsOf(candidates, temperature);
  const others = candidates.othersMass(temperature);
  const index = agreed(weights, others, (sum, total) => sum > u * total);
  if (index !== undefined) return candidates.ids[index];
  // Rounding may leave the sum of all just short of u.
  return others.high === 0 ? candidates.ids[weights.findLastIndex((w) => w > 0)] : undefined;
}

/** Relative to the best, shape [count]. */
function weightsOf({ logits, count }: Candidates, temperature: number): Float64Array {
  const weights = new Float64Array(count), best = logits[0] as number;
  for (let i = 0; i < count; i++) weights[i] = weight(logits[i] as number, best, temperature);
  return weights;
}

function sumOf(weights: Float64Array): number {
  let sum = 0;
  for (const w of weights) sum += w;
  return sum;
}

type Passes = (sum: number, total: number) => boolean;

/**
 * The first index whose cumulated weight passes, if it is the same for every mass that the others
 * may have.
 */
function agreed(weights: Float64Array, others: Bounds, passes: Passes): number | undefined {
  const known = sumOf(weights);
  const first = firstPassing(weights, known + others.low, passes);
  if (first === undefined || others.low === others.high) return first;
  return firstPassing(weights, known + others.high, passes) === first ? first : undefined;
}

function firstPassing(weights: Float64Array, total: number, passes: Passes): number | undefined {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    sum += weights[i] as number;
    if (passes(sum, total)) return i;
  }
  return undefined;
}
