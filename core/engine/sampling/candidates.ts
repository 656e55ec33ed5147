/**
 * The tokens that a sampler may choose from: those known by rank, and bounds on all the others. The
 * sampler decides on these alone where no value within the bounds would change its choice, so it
 * never truncates the distribution that the request asked for.
 */
import type { LogitStats, TokenLogits } from "../backend.ts";
import type { LogitAdjuster } from "./logit_adjuster.ts";

/** A closed interval that holds the true value. */
export interface Bounds {
  readonly low: number;
  readonly high: number;
}

export interface Candidates {
  /** Ids by logit descending, ties by id ascending; no other token ranks before any of them. */
  readonly ids: ArrayLike<number>;
  /** Logits of `ids`, after adjustment. */
  readonly logits: ArrayLike<number>;
  /** How many of `ids` count. */
  readonly count: number;
  /** How many tokens do not. */
  readonly others: number;
  /** No other token's logit is higher; -Infinity when none is possible. */
  readonly ceiling: number;
  /** Bounds of the sum of exp((logit - logits[0]) / temperature) over the others. */
  othersMass(temperature: number): Bounds;
}

/** Share of the whole mass by which sums in different order or precision may differ. */
const SLACK = 1e-5;

const NO_MASS: Bounds = { low: 0, high: 0 };

/** The first `count` candidates, with nothing behind them. */
export function firstOf({ ids, logits }: Candidates, count: number): Candidates {
  return { ids, logits, count, others: 0, ceiling: -Infinity, othersMass: () => NO_MASS };
}

/**
 * Candidates out of a row's statistics, or `undefined` where those cannot rank any token: the
 * adjustment may have raised one that the statistics do not list.
 *
 * @param touched Raw logits of the tokens that the adjuster touches; with them more rows are settled.
 */
export function candidatesFromStats(
  stats: LogitStats,
  adjuster: LogitAdjuster,
  vocabularySize: number,
  touched?: TokenLogits,
): Candidates | undefined {
  const { topIds, topLogits, logZ } = stats;
  const unlisted = vocabularySize - topIds.length;
  const ceiling = unlisted === 0 ? -Infinity : topLogits[topLogits.length - 1] as number;
  if (adjuster.neutral) {
    const othersMass = tailBounds(topLogits[0] as number, topLogits, logZ, ceiling, unlisted);
    const count = topIds.length;
    return { ids: topIds, logits: topLogits, count, others: unlisted, ceiling, othersMass };
  }
  if (!touched && unlisted > 0 && adjuster.mayRaiseOutside(topIds)) return undefined;
  const raw: number[] = [], ranked: { id: number; logit: number }[] = [], unranked: number[] = [];
  const place = (id: number, logit: number) => {
    raw.push(logit);
    const adjusted = Math.fround(adjuster.adjust(id, logit));
    if (adjusted > ceiling) ranked.push({ id, logit: adjusted });
    else unranked.push(adjusted);
  };
  for (let i = 0; i < topIds.length; i++) place(topIds[i] as number, topLogits[i] as number);
  if (touched) {
    const { ids, logits } = touched, listed = new Set(topIds);
    for (let i = 0; i < ids.length; i++) {
      if (!listed.has(ids[i] as number)) place(ids[i] as number, logits[i] as number);
    }
  }
  ranked.sort((a, b) => b.logit - a.logit || a.id - b.id);
  const best = ranked[0]?.logit ?? 0;
  const unknown = tailBounds(best, raw, logZ, ceiling, vocabularySize - raw.length);
  return {
    ids: ranked.map(({ id }) => id),
    logits: ranked.map(({ logit }) => logit),
    count: ranked.length,
    others: vocabularySize - ranked.length,
    ceiling,
    othersMass: (temperature) => {
      const { low, high } = unknown(temperature);
      let mass = 0;
      for (const logit of unranked) mass += weight(logit, best, temperature);
      // Where some of the unknown are touched, how far they were lowered is not known.
      return { low: (touched ? low : 0) + mass, high: high + mass };
    },
  };
}

/**
 * Bounds of the others' mass at any temperature T from their mass S at T = 1, with x = logit - best:
 * below 1, exp(x/T) <= exp(x) exp(ceiling (1/T - 1)); above 1, exp(x/T) >= exp(x) where x <= 0, and
 * the sum is at most n^(1-1/T) S^(1/T), by Hölder's inequality. That power is taken of log S, for S
 * itself may be too small for a number where a raised token is the best.
 */
function tailBounds(
  best: number,
  known: ArrayLike<number>,
  logZ: number,
  ceiling: number,
  others: number,
): (temperature: number) => Bounds {
  if (ceiling === -Infinity) return () => NO_MASS;
  let share = 1;
  for (let i = 0; i < known.length; i++) share -= Math.exp((known[i] as number) - logZ);
  const least = Math.max(0, share - SLACK), most = Math.max(0, share) + SLACK;
  const logAll = logZ - best, all = Math.exp(logAll);
  return (temperature) => {
    const low = least * all, high = most * all;
    if (temperature === 1) return { low, high };
    const inverse = 1 / temperature;
    if (temperature > 1) {
      const logHigh = logAll + Math.log(most);
      return { low, high: others ** (1 - inverse) * Math.exp(logHigh * inverse) };
    }
    const gap = ceiling - best;
    return { low: 0, high: high * (gap === 0 ? 1 : Math.exp(gap * (inverse - 1))) };
  };
}

/** exp((logit - best) / temperature); 0 for a masked logit, 1 for the best at any temperature. */
export function weight(logit: number, best: number, temperature: number): number {
  return logit === best ? 1 : Math.exp((logit - best) / temperature);
}
