/**
 * The safeguards of pruned attention (arXiv 2603.03310, section on robustness): a slow controller that
 * holds the measured divergence from dense attention under a bound, and gives pruning up where even its
 * most careful setting does not. Pure: measurements come in, settings come out.
 *
 * Each policy and range of lengths has one knob, how much may be left out. Divergences are rare and
 * heavy-tailed, so a window of measurements has a budget, `WINDOW` times the bound. The moment it is
 * spent the knob halves; only a whole window that used a small part of it turns the knob up a little.
 */
import { DEFAULT_THRESHOLD, lengthIndex, LENGTHS, type MassByLength, massFor } from "./pruning.ts";

/** Nats of KL(dense || pruned) that a pruned step may cost in the mean. */
export const DIVERGENCE_BOUND = 0.02;

/** Measurements that share a budget. */
const WINDOW = 32;
const TIGHTEN = 0.5;
const LOOSEN = 1.05;
/** A window loosens the knob when it used less than this part of its budget. */
const SPARE = 0.25;
/** What a single measurement counts for at most, in nats, so that sums stay finite. */
const MOST_NATS = 20;

/** Policies that a controller can hold. */
export type PrunedPolicy = "mass" | "paper";

/** Range of each knob: for `mass` the share left out, 1 - mass; for `paper` theta at H = 0. */
const RANGES: Readonly<Record<PrunedPolicy, { readonly least: number; readonly most: number }>> = {
  mass: { least: 0.01, most: 0.5 },
  paper: { least: 1e-5, most: 0.1 },
};

/** One policy at one range of lengths. */
export interface Knob {
  /** How much may be left out. */
  readonly setting: number;
  /** Measurements under this setting in the present window, and their sum in nats. */
  readonly count: number;
  readonly spent: number;
  /** Even the least setting spent its budget. */
  readonly failed: boolean;
}

/** Measurements of one range of lengths, whatever chose their budgets. */
export interface Measured {
  readonly count: number;
  /** Sum, in nats. */
  readonly nats: number;
}

export interface Safeguards {
  /** Nats. */
  readonly bound: number;
  /** One entry for each of `LENGTHS`. */
  readonly knobs: Readonly<Record<PrunedPolicy, readonly Knob[]>>;
  readonly measured: Readonly<Record<PrunedPolicy, readonly Measured[]>>;
}

/** @param table Masses to start from. @param bound In nats, above 0. */
export function startSafeguards(table: MassByLength, bound = DIVERGENCE_BOUND): Safeguards {
  const knob = (setting: number): Knob => ({ setting, count: 0, spent: 0, failed: false });
  const { least, most } = RANGES.mass;
  const drops = LENGTHS.map((length) => 1 - massFor(table, length));
  const none = LENGTHS.map(() => ({ count: 0, nats: 0 }));
  return {
    bound,
    knobs: {
      mass: drops.map((drop) => knob(Math.min(most, Math.max(least, drop)))),
      paper: LENGTHS.map(() => knob(DEFAULT_THRESHOLD)),
    },
    measured: { mass: none, paper: none },
  };
}

/** What the engine holds for a context, for requests that name no mass or threshold. */
export function heldAt(
  { knobs }: Safeguards,
  context: number,
): { readonly mass: number; readonly threshold: number } {
  const at = (policy: PrunedPolicy) => knobs[policy][lengthIndex(context)]?.setting ?? 0;
  return { mass: 1 - at("mass"), threshold: at("paper") };
}

/** Whether a policy has failed its bound, and is to be off from now on. */
export function hasFailed({ knobs }: Safeguards, policy: PrunedPolicy): boolean {
  return knobs[policy].some(({ failed }) => failed);
}

/**
 * Takes a measurement.
 *
 * @param nats KL(dense || pruned) of one row.
 * @param steered Whether the knob chose its budget. Budgets that a request fixed teach it nothing.
 */
export function observeDivergence(
  state: Safeguards,
  policy: PrunedPolicy,
  context: number,
  nats: number,
  steered: boolean,
): Safeguards {
  const index = lengthIndex(context);
  const cost = Math.min(nats, MOST_NATS);
  const update = <T>(
    all: Readonly<Record<PrunedPolicy, readonly T[]>>,
    change: (one: T) => T,
  ): Readonly<Record<PrunedPolicy, readonly T[]>> => ({
    ...all,
    [policy]: all[policy].map((one, i) => i === index ? change(one) : one),
  });
  const turn = (knob: Knob) => turned(knob, cost, WINDOW * state.bound, RANGES[policy]);
  return {
    bound: state.bound,
    knobs: steered ? update(state.knobs, turn) : state.knobs,
    measured: update(
      state.measured,
      ({ count, nats }) => ({ count: count + 1, nats: nats + cost }),
    ),
  };
}

/** A knob after one more measurement. @param budget Of a window, in nats. */
function turned(
  knob: Knob,
  nats: number,
  budget: number,
  { least, most }: { readonly least: number; readonly most: number },
): Knob {
  const count = knob.count + 1, spent = knob.spent + nats;
  const fresh = { ...knob, count: 0, spent: 0 };
  if (spent > budget) {
    if (knob.setting <= least) return { ...fresh, failed: true };
    return { ...fresh, setting: Math.max(least, TIGHTEN * knob.setting) };
  }
  if (count < WINDOW) return { ...knob, count, spent };
  if (spent > SPARE * budget) return fresh;
  return { ...fresh, setting: Math.min(most, LOOSEN * knob.setting) };
}
