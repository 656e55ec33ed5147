/**
 * The literal rule of arXiv 2603.03310: priority is the expected entropy reduction over cost, bounded,
 * and grows with the wait. It leans towards sequences far from resolved, the long ones, and loses to
 * first come, first served on mean latency; kept for comparison.
 */
import { tokenTime } from "../../../entropic/workload.ts";
import type { Policy } from "../policy.ts";
import { DEFAULT_TAIL, missingTokens, prefillTime, runTime } from "./patience.ts";

/** pi_max, in nats for each token's time; also what a sequence not seen yet is taken for. */
const MOST = 2;

/** pi = clip(pace / cost, 0, pi_max) + alpha wait, with pi_max / alpha = `tail` long answers' time. */
export function paper(tail = DEFAULT_TAIL): Policy {
  return {
    name: "paper",
    key(facts, now, workload) {
      const { arrival, clock } = facts;
      const cost = 1 + prefillTime(missingTokens(facts), workload) / tokenTime(workload);
      const priority = Math.min(MOST, (clock.pace ?? MOST) / cost);
      const alpha = MOST / (tail * runTime(workload));
      return -priority - alpha * (now - arrival);
    },
    refreshSteps: 32,
  };
}
