/** What the paper claims (arXiv 2603.03310, its table), and what a measured ratio says of it. */
import type { Interval } from "../bootstrap.ts";
import type { PolicyName } from "./policies.ts";
import type { Column } from "./table.ts";

/** Ratios to the baseline. */
export const CLAIMS = {
  sampling: { latency: 0.98, throughput: 1.02, dtau_dc: 1.08 },
  scheduling: { latency: 0.88, throughput: 1.15, dtau_dc: 1.12 },
  attention: { latency: 0.85, throughput: 1.2, dtau_dc: 1.25 },
  all: { latency: 0.7, throughput: 1.4, dtau_dc: 1.55 },
} as const satisfies Partial<Record<PolicyName, Record<Column, number>>>;

/**
 * `passed`: the whole interval is better than the claim. `reproduced`: it holds the claim. `less`: a
 * gain, short of the claim. `none`: the interval holds 1. `loss`: worse than the baseline.
 */
export type Verdict = "passed" | "reproduced" | "less" | "none" | "loss";

export function verdictOf(column: Column, measured: Interval, claim: number): Verdict {
  // As gains: above 0 is better than the baseline, whichever way the column counts.
  const sign = column === "latency" ? -1 : 1;
  const ends = [sign * (measured.low - 1), sign * (measured.high - 1)];
  const low = Math.min(...ends), high = Math.max(...ends), claimed = sign * (claim - 1);
  if (low > claimed) return "passed";
  if (high >= claimed) return low <= 0 ? "none" : "reproduced";
  if (low > 0) return "less";
  return high >= 0 ? "none" : "loss";
}
