/** Shortest remaining time first with the lengths known: the limit of what prediction can reach. */
import { prefillTime } from "../../../core/engine/policies/patience.ts";
import type { Policy } from "../../../core/engine/policy.ts";
import { tokenTime } from "../../../core/entropic/workload.ts";
import type { Arrival } from "./simulate.ts";

/** @param arrivals As they are submitted: the engine numbers them from 1. */
export function oracleSrpt(arrivals: readonly Arrival[]): Policy {
  const lengths = arrivals.map(({ trace, maxTokens }) => Math.min(trace.length, maxTokens));
  return {
    name: "oracle-srpt",
    key({ id, generatedTokens, uncomputedTokens }, _now, workload) {
      const left = (lengths[id - 1] ?? 0) - generatedTokens;
      return left * tokenTime(workload) + prefillTime(uncomputedTokens, workload);
    },
    refreshSteps: 32,
  };
}
