/** Shortest remaining time first with the lengths known: the limit of what prediction can reach. */
import { missingTokens, prefillTime } from "../../../core/engine/scheduling/policies/patience.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";
import { tokenTime } from "../../../core/entropic/workload.ts";
import type { Arrival } from "./simulate.ts";

/** @param arrivals As they are submitted: the engine numbers them from 1. */
export function oracleSrpt(arrivals: readonly Arrival[]): Policy {
  const lengths = arrivals.map(({ trace, maxTokens }) => Math.min(trace.length, maxTokens));
  return {
    name: "oracle-srpt",
    key(facts, _now, workload) {
      const left = (lengths[facts.id - 1] ?? 0) - facts.generatedTokens;
      return left * tokenTime(workload) + prefillTime(missingTokens(facts), workload);
    },
    refreshSteps: 32,
  };
}
