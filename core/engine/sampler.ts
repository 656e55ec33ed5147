/**
 * Draws the next token. The stages come in llama.cpp's order: bias and penalties, top_k, top_p
 * (arXiv 1904.09751), min_p (arXiv 2407.01082), then temperature; so the filters see the distribution
 * at temperature 1. Pure: the random number is an argument.
 *
 * Every stage works on candidates in rank order and on bounds for the tokens behind them. Where the
 * bounds leave a choice open, the answer is `undefined`, and the caller asks again with more.
 */
import { RequestError } from "../errors.ts";
import type { LogitStats } from "./backend.ts";
import { type Bounds, type Candidates, candidatesFromStats, candidatesOf } from "./candidates.ts";
import { weight } from "./candidates.ts";
import type { SamplingParams } from "./engine.ts";
import type { LogitAdjuster } from "./logit_adjuster.ts";

/** How many candidates the whole row is first ranked into, and the factor from try to try. */
const FIRST_RANKED = 256;
const GROWTH = 16;

/**
 * The next token, if the statistics of its row settle it.
 *
 * @param u Random number in [0, 1).
 */
export function sampleFromStats(
  sampling: SamplingParams,
  stats: LogitStats,
  adjuster: LogitAdjuster,
  vocabularySize: number,
  u: number,
): number | undefined {
  if (isGreedy(sampling) && adjuster.neutral) return stats.topIds[0];
  const candidates = candidatesFromStats(stats, adjuster, vocabularySize);
  return candidates === undefined ? undefined : choose(candidates, sampling, u);
}

/**
 * The next token, out of the whole row of the model's logits, shape [vocabularySize].
 *
 * @throws {RequestError} No token is left to choose from.
 */
export function sampleFromLogits(
  sampling: SamplingParams,
  logits: Float32Array,
  adjuster: LogitAdjuster,
  u: number,
): number {
  const adjusted = adjuster.adjustAll(logits);
  for (let count = FIRST_RANKED;; count *= GROWTH) {
    const candidates = candidatesOf(adjusted, count);
    if (candidates.logits[0] === -Infinity) {
      throw new RequestError("Cannot sample a token: logit_bias and min_tokens ban all of them", {
        param: "logit_bias",
      });
    }
    const token = choose(candidates, sampling, u);
    if (token !== undefined) return token;
    if (candidates.others === 0) throw new RangeError("Cannot sample a token from unusable logits");
  }
}

function isGreedy(sampling: SamplingParams): boolean {
  return sampling.temperature === 0;
}

function choose(candidates: Candidates, sampling: SamplingParams, u: number): number | undefined {
  if (candidates.ids.length === 0) return undefined;
  if (isGreedy(sampling)) return candidates.ids[0];
  const kept = keepLikely(
    keepMass(keepFirst(candidates, sampling.topK), sampling.topP),
    sampling.minP,
  );
  return kept === undefined ? undefined : draw(kept, sampling.temperature ?? 1, u);
}

/** top_k: the k most likely. */
function keepFirst(candidates: Candidates, k = 0): Candidates | undefined {
  if (k === 0 || k >= candidates.ids.length + candidates.others) return candidates;
  return k <= candidates.ids.length ? only(candidates, k) : undefined;
}

/** top_p: the fewest, best first, whose mass reaches p of the whole. */
function keepMass(candidates: Candidates | undefined, p = 1): Candidates | undefined {
  if (candidates === undefined || p >= 1) return candidates;
  const weights = weightsOf(candidates, 1);
  const index = agreed(weights, candidates.othersMass(1), (sum, total) => sum >= p * total);
  return index === undefined ? undefined : only(candidates, index + 1);
}

/** min_p: those at least m times as likely as the best. */
function keepLikely(candidates: Candidates | undefined, m = 0): Candidates | undefined {
  if (candidates === undefined || m <= 0) return candidates;
  const threshold = (candidates.logits[0] as number) + Math.log(m);
  let count = 0;
  while (count < candidates.logits.length && (candidates.logits[count] as number) >= threshold) {
    count++;
  }
  const settled = count < candidates.logits.length || candidates.ceiling < threshold ||
    candidates.others === 0;
  return settled ? only(candidates, Math.max(1, count)) : undefined;
}

/** The token where the cumulated weights pass the share `u` of their sum. */
function draw(candidates: Candidates, temperature: number, u: number): number | undefined {
  const weights = weightsOf(candidates, temperature);
  const others = candidates.othersMass(temperature);
  const index = agreed(weights, others, (sum, total) => sum > u * total);
  return index === undefined ? undefined : candidates.ids[index];
}

/** The first `count` candidates, and nothing behind them. */
function only(candidates: Candidates, count: number): Candidates {
  return {
    ids: Array.prototype.slice.call(candidates.ids, 0, count),
    logits: Array.prototype.slice.call(candidates.logits, 0, count),
    others: 0,
    ceiling: -Infinity,
    othersMass: () => ({ low: 0, high: 0 }),
  };
}

function weightsOf({ logits }: Candidates, temperature: number): Float64Array {
  const best = logits[0] as number;
  return Float64Array.from(logits, (logit) => weight(logit, best, temperature));
}

/**
 * The first index whose cumulated weight passes, if it is the same for every mass that the others
 * may have. The sums run best first, so that every path to a choice rounds alike.
 */
function agreed(
  weights: Float64Array,
  others: Bounds,
  passes: (sum: number, total: number) => boolean,
): number | undefined {
  let known = 0;
  for (const w of weights) known += w;
  const first = firstPassing(weights, known + others.low, passes);
  if (first === undefined) {
    // Rounding may keep the last one from passing although nothing lies behind it.
    return others.high === 0 ? weights.findLastIndex((w) => w > 0) : undefined;
  }
  if (others.low === others.high) return first;
  return firstPassing(weights, known + others.high, passes) === first ? first : undefined;
}

function firstPassing(
  weights: Float64Array,
  total: number,
  passes: (sum: number, total: number) => boolean,
): number | undefined {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    sum += weights[i] as number;
    if (passes(sum, total)) return i;
  }
  return undefined;
}
