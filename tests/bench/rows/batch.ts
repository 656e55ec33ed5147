/** Sequences that decode together: tokens a second over all, beside llama-batched-bench. */
import { NATIVE, workloadRow } from "./workload_row.ts";

export const BATCH_ROWS = [8, 16].map((batch) =>
  workloadRow({
    name: `batch-${batch}`,
    about: `${batch} sequences that decode together, total`,
    workload: { figure: "decode", threads: 1, batch, depth: 16, tokens: 32 },
    peers: NATIVE,
    others: { "in f32": { arithmetic: "f32" } },
  })
);
