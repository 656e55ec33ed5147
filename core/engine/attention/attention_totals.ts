/** Sums of what attention read, step by step. */
import { type AttentionStats, NO_ATTENTION } from "../backend.ts";
import type { AttentionTotals } from "../engine.ts";

export const NO_TOTALS: AttentionTotals = {
  ...NO_ATTENTION,
  prunedSteps: 0,
  steps: 0,
};

/** @param tokens That attended together. @param pruned Whether their plan was. */
export function addAttention(
  totals: AttentionTotals,
  stats: AttentionStats,
  tokens: number,
  pruned: boolean,
): AttentionTotals {
  const prunedSteps = totals.prunedSteps + (pruned ? tokens : 0);
  const weight = pruned ? tokens / prunedSteps : 0;
  return {
    prunedSteps,
    steps: totals.steps + tokens,
    blocksRead: totals.blocksRead + stats.blocksRead,
    blocksTotal: totals.blocksTotal + stats.blocksTotal,
    bytesRead: totals.bytesRead + stats.bytesRead,
    bytesTotal: totals.bytesTotal + stats.bytesTotal,
    macs: totals.macs + stats.macs,
    macsTotal: totals.macsTotal + stats.macsTotal,
    massDropped: totals.massDropped + weight * (stats.massDropped - totals.massDropped),
  };
}
