/**
 * The tokens that a sampler may choose from: those known by rank, and bounds on all the others. The
 * sampler decides on these alone where no value within the bounds would change its choice, so it
 * never truncates the distribution that the request asked for.
 */
import type { LogitStats } from "../backend.ts";
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
  /** The first of the others, by id, at which their cumulated mass passes `mass`; if known. */
  otherAt(mass: number, temperature: number): number | undefined;
}

/** Share of the whole mass by which sums in different order or precision may differ. */
const SLACK = 1e-5;

const NO_MASS: Bounds = { low: 0, high: 0 };

/** Candidates out of the whole row of adjusted logits: the `limit` best ranked, the rest summed. */
export function candidatesOf(logits: Float32Array, limit: number): Candidates {
  const ids = bestIds(logits, limit);
  const ranked = Float32Array.from(ids, (id) => logits[id] as number);
  const count = ids.length;
  const best = ranked[0] as number, last = ranked[count - 1] as number;
  const lastId = ids[count - 1] as number;
  const isOther = (id: number, logit: number) => logit < last || (logit === last && id > lastId);
  return {
    ids,
    logits: ranked,
    count,
    others: logits.length - count,
    ceiling: logits.length === count ? -Infinity : last,
    othersMass(temperature) {
      let mass = 0;
      for (let id = 0; id < logits.length; id++) {
        const logit = logits[id] as number;
        if (isOther(id, logit)) mass += weight(logit, best, temperature);
      }
      return { low: mass, high: mass };
    },
    otherAt(mass, temperature) {
      let sum = 0, possible: number | undefined;
      for (let id = 0; id < logits.length; id++) {
        const logit = logits[id] as number;
        const w = isOther(id, logit) ? weight(logit, best, temperature) : 0;
        if (w === 0) continue;
        possible = id;
        if ((sum += w) > mass) break;
      }
      return possible;
    },
  };
}

/** The first `count` candidates, with nothing behind them. */
export function firstOf(candidates: Candidates, count: number): Candidates {
  return {
    ids: candidates.ids,
    logits: candidates.logits,
    count,
    others: 0,
    ceiling: -Infinity,
    othersMass: () => NO_MASS,
    otherAt: () => undefined,
  };
}

/**
 * Candidates out of a row's statistics, or `undefined` where those cannot rank any token: the
 * adjustment may have raised one that the statistics do not list.
 */
export function candidatesFromStats(
  stats: LogitStats,
  adjuster: LogitAdjuster,
  vocabularySize: number,
): Candidates | undefined {
  const { topIds, topLogits, logZ } = stats;
  const others = vocabularySize - topIds.length;
  const ceiling = others === 0 ? -Infinity : topLogits[topLogits.length - 1] as number;
  if (adjuster.neutral) {
    const othersMass = tailBounds(topLogits[0] as number, topLogits, logZ, ceiling, others);
    const count = topIds.length;
    return { ids: topIds, logits: topLogits, count, others, ceiling, othersMass, otherAt };
  }
  if (others > 0 && adjuster.mayRaiseOutside(topIds)) return undefined;
  const order = Array.from(topIds, (id, i) => ({ id, raw: topLogits[i] as number }))
    .map(({ id, raw }) => ({ id, raw, logit: Math.fround(adjuster.adjust(id, raw)) }))
    .filter(({ logit }) => logit > ceiling)
    .sort((a, b) => b.logit - a.logit || a.id - b.id);
  const best = order[0]?.logit ?? 0;
  const unranked = vocabularySize - order.length;
  const exact = tailBounds(best, order.map(({ raw }) => raw), logZ, ceiling, unranked);
  return {
    ids: order.map(({ id }) => id),
    logits: order.map(({ logit }) => logit),
    count: order.length,
    others: unranked,
    ceiling,
    // The others were lowered or left alone, so their mass can only have shrunk.
    othersMass: (temperature) => ({ low: 0, high: exact(temperature).high }),
    otherAt,
  };
}

/** Statistics do not list the others. */
function otherAt(): undefined {}

/**
 * Bounds of the others' mass at any temperature T from their mass S at T = 1, with x = logit - best:
 * below 1, exp(x/T) <= exp(x) exp(ceiling (1/T - 1)); above 1, exp(x/T) >= exp(x) where x <= 0, and
 * the sum is at most n^(1-1/T) S^(1/T), by Hölder's inequality.
 */
function tailBounds(
  best: number,
  known: ArrayLike<number>,
  logZ: number,
  ceiling: number,
  others: number,
): (temperature: number) => Bounds {
  return (temperature) => {
    if (ceiling === -Infinity) return NO_MASS;
    const all = Math.exp(logZ - best);
    let rest = all;
    for (let i = 0; i < known.length; i++) rest -= Math.exp((known[i] as number) - best);
    const { low, high } = around(rest, all);
    if (temperature === 1) return { low, high };
    const inverse = 1 / temperature;
    if (temperature > 1) return { low, high: others ** (1 - inverse) * high ** inverse };
    const gap = ceiling - best;
    return { low: 0, high: high * (gap === 0 ? 1 : Math.exp(gap * (inverse - 1))) };
  };
}

/** exp((logit - best) / temperature); 0 for a masked logit, 1 for the best at any temperature. */
export function weight(logit: number, best: number, temperature: number): number {
  return logit === best ? 1 : Math.exp((logit - best) / temperature);
}

function around(rest: number, all: number): Bounds {
  return { low: Math.max(0, rest - SLACK * all), high: Math.max(0, rest) + SLACK * all };
}

/** The ids of the `limit` largest logits, best first, ties by id ascending. */
function bestIds(logits: Float32Array, limit: number): number[] {
  const ranksBefore = (a: number, b: number) => {
    const x = logits[a] as number, y = logits[b] as number;
    return x > y || (x === y && a < b);
  };
  // A binary heap of the best so far, with the last of them at its root.
  const heap: number[] = [];
  for (let id = 0; id < logits.length; id++) {
    if (heap.length < limit) {
      siftUp(heap, id, ranksBefore);
    } else if ((logits[id] as number) > (logits[heap[0] as number] as number)) {
      siftDown(heap, id, ranksBefore);
    }
  }
  return heap.sort((a, b) => ranksBefore(a, b) ? -1 : 1);
}

type Order = (a: number, b: number) => boolean;

/** Adds an id to the heap. */
function siftUp(heap: number[], id: number, ranksBefore: Order): void {
  let index = heap.length;
  while (index > 0) {
    const parent = heap[(index - 1) >> 1] as number;
    if (!ranksBefore(parent, id)) break;
    heap[index] = parent;
    index = (index - 1) >> 1;
  }
  heap[index] = id;
}

/** Puts an id in the place of the root. */
function siftDown(heap: number[], id: number, ranksBefore: Order): void {
  let index = 0;
  for (;;) {
    const left = 2 * index + 1, right = left + 1;
    if (left >= heap.length) break;
    const worse = right < heap.length && ranksBefore(heap[left] as number, heap[right] as number);
    const child = worse ? right : left;
    if (!ranksBefore(id, heap[child] as number)) break;
    heap[index] = heap[child] as number;
    index = child;
  }
  heap[index] = id;
}
