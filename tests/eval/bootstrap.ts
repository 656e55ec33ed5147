/** Bootstrap intervals (Efron 1979) over paired runs. */
import { randomNumbers } from "../support/random.ts";

export interface Interval {
  readonly value: number;
  /** 95 %. */
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 2000;

/** Mean of `values` over mean of `base`, run `i` of the one paired with run `i` of the other. */
export function pairedRatio(values: readonly number[], base: readonly number[]): Interval {
  return bootstrap(values.length, (runs) => sumOf(values, runs) / sumOf(base, runs));
}

/**
 * Any statistic of `count` runs, and its interval over runs drawn with replacement.
 *
 * @param statistic Of the runs with these indices.
 */
export function bootstrap(
  count: number,
  statistic: (runs: readonly number[]) => number,
): Interval {
  const random = randomNumbers(1);
  const runs = Array.from({ length: count }, (_, i) => i);
  const drawn = Array.from(
    { length: RESAMPLES },
    () => statistic(runs.map(() => Math.floor(random() * count))),
  ).sort((a, b) => a - b);
  return {
    value: statistic(runs),
    low: drawn[Math.floor(0.025 * RESAMPLES)] as number,
    high: drawn[Math.floor(0.975 * RESAMPLES)] as number,
  };
}

export function sumOf(values: readonly number[], runs: readonly number[]): number {
  return runs.reduce((sum, run) => sum + (values[run] as number), 0);
}
