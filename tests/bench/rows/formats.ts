/** The model with its tensors in other formats, converted by llama.cpp's own tool. */
import { NATIVE, workloadRow } from "./workload_row.ts";

const FORMATS = ["q4_0", "q8_0", "q4_k_m"] as const;

export const FORMAT_ROWS = FORMATS.map((format) =>
  workloadRow({
    name: `decode-${format}`,
    about: `decode of a ${format.toUpperCase()} file, 1 thread`,
    workload: { figure: "decode", threads: 1, batch: 1, depth: 0, tokens: 64 },
    peers: NATIVE,
    format,
  })
);
