/**
 * The safeguards of pruned attention (arXiv 2603.03310, section on robustness): a slow controller that
 * holds the measured divergence from dense attention under a bound, and gives pruning up where even its
 * most careful setting does not. Pure: measurements come in, settings come out.
 *
 * Each policy and range of lengths has one knob, how much may be left out. Divergences are heavy-tailed,
 * and measured seldom, so a window of measurements has a budget, `WINDOW` times the bound. The moment it
 * is spent the knob turns down by a good part; only a whole window that used less than half of it turns
 * the knob up, by a little, and not beyond what was calibrated, which kept perplexity as well. Of
 * log-normal divergences with sigma 1.7, the mean settles at .6 of the bound.
 */
import {
  ATTENTION_FLOOR,
  DEFAULT_THRESHOLD,
  lengthIndex,
  LENGTHS,
  type MassByLength,
  massFor,
} from "./pruning.ts";

/** Nats of KL(dense || pruned) that a pruned step may cost in the mean. */
export const DIVERGENCE_BOUND = 0.02;

/** The least bound: arithmetic in 32 bits diverges by about as much. */
export const LEAST_BOUND = 1e-6;

/** Measurements that share a budget. */
const WINDOW = 32;
const TIGHTEN = 0.7;
const LOOSEN = 1.1;
/** A window loosens the knob when it used less than this part of its budget. */
const SPARE = 0.5;
/** What a single measurement counts for at most, in nats, so that sums stay finite. */
const MOST_NATS = 20;

/** Policies that a controller can hold. */
export type PrunedPolicy = "mass" | "paper";

/** Widest range of each knob: for `mass` the share left out, 1 - mass; for `paper` theta at H = 0. */
const RANGES: Readonly<Record<PrunedPolicy, { readonly least: number; readonly most: number }>> = {
  mass: { least: 0.01, most: 1 - ATTENTION_FLOOR.mass },
  paper: { least: 1e-5, most: 0.1 },
};

/** Measurements, and their sum in nats. */
export interface Measured {
  readonly count: number;
  readonly nats: number;
}

/** One policy at one range of lengths. */
export interface Knob {
  /** How much may be left out, and the most that ever may. */
  readonly setting: number;
  readonly most: number;
  /** Under this setting, in the present window. */
  readonly window: Measured;
  /** Even the least setting spent its budget. */
  readonly failed: boolean;
  /** Of all time, whatever chose the budgets. */
  readonly measured: Measured;
}

type Knobs = Readonly<Record<PrunedPolicy, Knob>>;

export interface Safeguards {
  /** Nats. */
  readonly bound: number;
  /** One entry for each of `LENGTHS`. */
  readonly ranges: readonly Knobs[];
}

const NONE: Measured = { count: 0, nats: 0 };

/**
 * @param masses The least to hold, and to start from; the default, to start from only, where empty.
 * @param threshold Theta at H = 0, the most to hold and to start from; the default where left out.
 * @param bound In nats, above 0.
 * @param leastMass The floor that every budget has, lest a knob turn on below it to no effect.
 */
export function startSafeguards(
  masses: MassByLength,
  threshold?: number,
  bound = DIVERGENCE_BOUND,
  leastMass = ATTENTION_FLOOR.mass,
): Safeguards {
  const knob = (policy: PrunedPolicy, start: number, isMost: boolean): Knob => {
    const { least } = RANGES[policy];
    const most = policy === "mass" ? 1 - leastMass : RANGES.paper.most;
    const setting = Math.min(most, Math.max(least, start));
    return {
      setting,
      most: isMost ? setting : most,
      window: NONE,
      failed: false,
      measured: NONE,
    };
  };
  const ranges = LENGTHS.map((length) => ({
    mass: knob("mass", 1 - massFor(masses, length), masses.length > 0),
    paper: knob("paper", threshold ?? DEFAULT_THRESHOLD, threshold !== undefined),
  }));
  return { bound, ranges };
}

/** What the engine holds for a context, for requests that name no mass or threshold. */
export function heldAt(
  { ranges }: Safeguards,
  context: number,
): { readonly mass: number; readonly threshold: number } {
  return held(ranges[lengthIndex(context)] as Knobs);
}

/** Whether a policy has failed its bound, and is to be off from now on. */
export function hasFailed({ ranges }: Safeguards, policy: PrunedPolicy): boolean {
  return ranges.some((knobs) => knobs[policy].failed);
}

/** All measurements so far. */
export function measurementsOf({ ranges }: Safeguards): Measured {
  return ranges.flatMap(({ mass, paper }) => [mass.measured, paper.measured]).reduce(add);
}

/** What is held at each range of lengths, and the mean divergence there, 0 before any; nats. */
export function settingsOf({ ranges }: Safeguards) {
  const mean = ({ count, nats }: Measured) => count > 0 ? nats / count : 0;
  return ranges.map((knobs, i) => ({
    length: LENGTHS[i] as number,
    ...held(knobs),
    divergence: { mass: mean(knobs.mass.measured), paper: mean(knobs.paper.measured) },
  }));
}

/**
 * Takes a measurement.
 *
 * @param nats KL(dense || pruned) of one row.
 * @param steered Whether the knob chose its budget. Budgets that a request fixed teach it nothing.
 */
export function observeDivergence(
  { bound, ranges }: Safeguards,
  policy: PrunedPolicy,
  context: number,
  nats: number,
  steered: boolean,
): Safeguards {
  const one = { count: 1, nats: Math.min(nats, MOST_NATS) };
  const change = (knob: Knob): Knob => ({
    ...(steered ? turn(knob, one, WINDOW * bound, RANGES[policy].least) : knob),
    measured: add(knob.measured, one),
  });
  const index = lengthIndex(context);
  return {
    bound,
    ranges: ranges.map((knobs, i) =>
      i === index ? { ...knobs, [policy]: change(knobs[policy]) } : knobs
    ),
  };
}

/** A knob after one more measurement. @param budget Of a window, in nats. */
function turn(knob: Knob, one: Measured, budget: number, least: number): Knob {
  const window = add(knob.window, one);
  if (window.nats > budget) {
    if (knob.setting <= least) return { ...knob, window: NONE, failed: true };
    return { ...knob, window: NONE, setting: Math.max(least, TIGHTEN * knob.setting) };
  }
  if (window.count < WINDOW) return { ...knob, window };
  if (window.nats > SPARE * budget) return { ...knob, window: NONE };
  return { ...knob, window: NONE, setting: Math.min(knob.most, LOOSEN * knob.setting) };
}

function held({ mass, paper }: Knobs) {
  return { mass: 1 - mass.setting, threshold: paper.setting };
}

function add(a: Measured, b: Measured): Measured {
  return { count: a.count + b.count, nats: a.nats + b.nats };
}
