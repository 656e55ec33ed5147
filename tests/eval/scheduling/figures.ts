/** The figures of runs, and how those of one policy compare with another's in the same runs. */
import { type Interval, pairedRatio } from "../bootstrap.ts";
import type { Outcome } from "./drive.ts";
import type { Arrival } from "./simulate.ts";

/** Of one run; milliseconds. */
export interface Figures {
  /** Mean and 99th percentile from arrival to end. */
  readonly latency: number;
  readonly p99: number;
  readonly firstToken: number;
  /** Mean and maximum of the requests' longest times between two tokens. */
  readonly pause: number;
  readonly longestPause: number;
  /** Share of the latency targets that were met; 0 without any. */
  readonly met: number;
}

export const FIGURES = ["latency", "p99", "firstToken", "pause", "longestPause", "met"] as const;

export function figuresOf(
  outcomes: readonly Outcome[],
  arrivals: readonly Pick<Arrival, "wishes">[] = [],
): Figures {
  const mean = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((sum, outcome) => sum + of(outcome), 0) / outcomes.length;
  const sorted = outcomes.map(({ latency }) => latency).sort((a, b) => a - b);
  const targets = arrivals.map(({ wishes }) => wishes?.latencyTarget);
  const asked = targets.filter((target) => target !== undefined).length;
  const met = outcomes.filter(({ latency }, i) => latency <= (targets[i] ?? -1)).length;
  return {
    latency: mean(({ latency }) => latency),
    p99: sorted[Math.floor(0.99 * sorted.length)] as number,
    firstToken: mean(({ firstToken }) => firstToken),
    pause: mean(({ longestPause }) => longestPause),
    longestPause: Math.max(...outcomes.map(({ longestPause }) => longestPause)),
    met: asked > 0 ? met / asked : 0,
  };
}

/** Means over the runs. */
export function meanFigures(runs: readonly Figures[]): Figures {
  return every((key) => runs.reduce((sum, run) => sum + run[key], 0) / runs.length);
}

/** Ratios of the means, run by run paired. */
export function ratiosTo(
  base: readonly Figures[],
  runs: readonly Figures[],
): Record<keyof Figures, Interval> {
  return every((key) => pairedRatio(runs.map((run) => run[key]), base.map((run) => run[key])));
}

export function showInterval({ value, low, high }: Interval): string {
  return `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

function every<T>(make: (key: keyof Figures) => T): Record<keyof Figures, T> {
  return Object.fromEntries(FIGURES.map((key) => [key, make(key)])) as Record<keyof Figures, T>;
}
