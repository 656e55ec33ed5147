/** One sequence in an empty context: decode and prefill, beside each peer. */
import { NATIVE, WLLAMA, workloadRow } from "./workload_row.ts";

const decode = { figure: "decode", threads: 1, batch: 1, depth: 0, tokens: 64 } as const;
const prefill = { figure: "prefill", threads: 1, batch: 1, depth: 0, tokens: 512 } as const;
/** For peers that take a minute for 512. */
const shortPrefill = { ...prefill, tokens: 120 };
const F32 = { "in f32": { arithmetic: "f32" } } as const;
const NODE = [{ name: "node-llama-cpp" }] as const;

export const SPEED_ROWS = [
  workloadRow({
    name: "decode",
    about: "1 thread, beside llama.cpp native",
    workload: decode,
    peers: NATIVE,
    others: F32,
  }),
  workloadRow({
    name: "decode-2t",
    about: "2 threads each, and this engine with 1",
    workload: { ...decode, threads: 2 },
    peers: NATIVE,
    others: { "1 thread": { threads: 1 } },
  }),
  workloadRow({
    name: "decode-wllama",
    about: "beside the faster of two wllamas, each with its best format",
    workload: decode,
    peers: WLLAMA,
  }),
  workloadRow({
    name: "decode-node-llama-cpp",
    about: "beside llama.cpp as an addon of Node",
    workload: decode,
    peers: NODE,
  }),
  workloadRow({
    name: "prefill",
    about: "a prompt of 512 tokens, 1 thread, beside llama.cpp native",
    workload: prefill,
    peers: NATIVE,
    others: F32,
  }),
  workloadRow({
    name: "prefill-2t",
    about: "the same with 2 threads each",
    workload: { ...prefill, threads: 2 },
    peers: NATIVE,
    others: { "1 thread": { threads: 1 } },
  }),
  workloadRow({
    name: "prefill-wllama",
    about: "a prompt of 120 tokens, beside the faster of two wllamas",
    workload: shortPrefill,
    peers: WLLAMA,
  }),
  workloadRow({
    name: "prefill-node-llama-cpp",
    about: "a prompt of 120 tokens, beside llama.cpp as an addon of Node",
    workload: shortPrefill,
    peers: NODE,
  }),
];
