/** Sums of what attention read, step by step. */
import type { AttentionStats } from "../backend.ts";
import type { AttentionTotals } from "../engine.ts";

export const NO_TOTALS: AttentionTotals = {
  prunedSteps: 0,
  steps: 0,
  blocksRead: 0,
  blocksTotal: 0,
  bytesRead: 0,
  bytesTotal: 0,
  macs: 0,
  macsTotal: 0,
  massDropped: 0,
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
