/** Bootstrap intervals (Efron 1979) of a ratio of means over paired runs. */
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
  const random = randomNumbers(1);
  const ratio = (runs: readonly number[]) => {
    let above = 0, below = 0;
    for (const run of runs) {
      above += values[run] as number;
      below += base[run] as number;
    }
    return above / below;
  };
  const runs = values.map((_, i) => i);
  const ratios = Array.from(
    { length: RESAMPLES },
    () => ratio(runs.map(() => Math.floor(random() * runs.length))),
  ).sort((a, b) => a - b);
  return {
    value: ratio(runs),
    low: ratios[Math.floor(0.025 * RESAMPLES)] as number,
    high: ratios[Math.floor(0.975 * RESAMPLES)] as number,
  };
}
