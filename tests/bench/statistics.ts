/** Summaries of repeated measurements. */

export interface Summary {
  readonly median: number;
  /** (largest - smallest) / median. */
  readonly spread: number;
}

/** @throws {RangeError} No values. */
export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  const [least, most] = [sorted[0], sorted.at(-1)];
  if (low === undefined || high === undefined || least === undefined || most === undefined) {
    throw new RangeError("Cannot summarise no values");
  }
  const median = (low + high) / 2;
  return { median, spread: (most - least) / median };
}
