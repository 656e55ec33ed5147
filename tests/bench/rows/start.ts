/** How soon a model is ready, and how soon a process that has nothing loaded answers. */
import { NATIVE, WLLAMA, workloadRow } from "./workload_row.ts";

const workload = { threads: 1, batch: 1, depth: 0, tokens: 1 } as const;

export const START_ROWS = [
  workloadRow({
    name: "load",
    about: "from a cached file to a backend that is ready",
    workload: { figure: "load", ...workload },
    peers: WLLAMA,
  }),
  workloadRow({
    name: "cold-start",
    about: "from a command to its first byte of text",
    workload: { figure: "cold-start", ...workload },
    peers: NATIVE,
  }),
];
