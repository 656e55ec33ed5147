/**
 * Decoding at the end of a long context, which each side computes outside the timing. The native side
 * computes it anew in each run, so runs are few.
 */
import { NATIVE, workloadRow } from "./workload_row.ts";

const RUNS = 3;
const at = (depth: number) => ({
  ...{ figure: "decode", threads: 1, batch: 1, depth, tokens: 48 } as const,
});

export const DEPTH_ROWS = [
  ...[2048, 6144].map((depth) =>
    workloadRow({
      name: `depth-${depth}`,
      about: `after ${depth} tokens, dense attention`,
      workload: at(depth),
      peers: NATIVE,
      runs: RUNS,
    })
  ),
  workloadRow({
    name: "depth-6144-pruned",
    about: "after 6144 tokens of a novel, pruned attention, beside dense native",
    workload: { ...at(6144), attention: { kind: "mass", mass: 0.9, minBlocks: 24 } },
    peers: NATIVE,
    runs: RUNS,
  }),
];
