/** The rows of `deno task bench`, as data: a workload, and the peers it is compared with. */
import type { Workload } from "./contender.ts";

export interface Row {
  readonly name: string;
  readonly unit: string;
  /** The fastest of these that is installed is the one compared with. */
  readonly peers: readonly string[];
  readonly workload: Omit<Workload, "model">;
  /** The tensor type to convert the model to first. */
  readonly requantise?: "q8_0";
}

const NATIVE = ["llama.cpp"];
const WLLAMA = ["wllama 2.4.0", "wllama newest"];

const decode = { figure: "decode", threads: 1, batch: 1, depth: 0, tokens: 64 } as const;
const prefill = { figure: "prefill", threads: 1, batch: 1, depth: 0, tokens: 120 } as const;
const start = { threads: 1, batch: 1, depth: 0, tokens: 1 } as const;
const SPEED = "tokens/s";

export const ROWS: readonly Row[] = [
  { name: "decode", unit: SPEED, peers: NATIVE, workload: decode },
  { name: "prefill", unit: SPEED, peers: NATIVE, workload: prefill },
  { name: "decode-wllama", unit: SPEED, peers: WLLAMA, workload: decode },
  { name: "prefill-wllama", unit: SPEED, peers: WLLAMA, workload: prefill },
  { name: "decode-node-llama-cpp", unit: SPEED, peers: ["node-llama-cpp"], workload: decode },
  { name: "prefill-node-llama-cpp", unit: SPEED, peers: ["node-llama-cpp"], workload: prefill },
  { name: "load", unit: "s", peers: WLLAMA, workload: { figure: "load", ...start } },
  { name: "cold-start", unit: "s", peers: NATIVE, workload: { figure: "cold-start", ...start } },
  { name: "decode-2t", unit: SPEED, peers: NATIVE, workload: { ...decode, threads: 2 } },
  { name: "prefill-2t", unit: SPEED, peers: NATIVE, workload: { ...prefill, threads: 2 } },
  { name: "batch-8", unit: SPEED, peers: NATIVE, workload: { ...decode, batch: 8, depth: 16 } },
  { name: "batch-16", unit: SPEED, peers: NATIVE, workload: { ...decode, batch: 16, depth: 16 } },
  { name: "depth-2048", unit: SPEED, peers: NATIVE, workload: { ...decode, depth: 2048 } },
  { name: "depth-6144", unit: SPEED, peers: NATIVE, workload: { ...decode, depth: 6144 } },
  {
    name: "decode-q8_0",
    unit: SPEED,
    peers: NATIVE,
    workload: decode,
    requantise: "q8_0",
  },
];

/** What runs when no row is named. */
export const DEFAULT_ROWS: readonly string[] = [
  "decode",
  "prefill",
  "decode-wllama",
  "prefill-wllama",
  "load",
  "cold-start",
];
