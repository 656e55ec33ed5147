/** The WASM artifacts, as data: what each is compiled from, with which flags. */
import type { InstructionKind } from "./instructions.ts";

export interface Artifact {
  /** Name of the files in `wasm/lib`. */
  readonly name: string;
  /** The crate's folder under `wasm/`. */
  readonly crate: string;
  /** The crate's library, which names the compiler's output. */
  readonly library: string;
  /** Flags for rustc. */
  readonly rustFlags: readonly string[];
  /** Whether the standard library has to be compiled with these flags too. */
  readonly buildStd: boolean;
  /** Those of the three kinds of instructions that it must have; it must not have the others. */
  readonly instructions: readonly InstructionKind[];
}

const kernels = { crate: "kernels", library: "kernels" } as const;

export const ARTIFACTS: readonly Artifact[] = [
  {
    ...kernels,
    name: "kernels_simd128",
    rustFlags: ["-Ctarget-feature=+simd128"],
    buildStd: false,
    instructions: ["simd"],
  },
  {
    ...kernels,
    name: "kernels_relaxed",
    rustFlags: ["-Ctarget-feature=+simd128,+relaxed-simd"],
    buildStd: false,
    instructions: ["simd", "relaxed"],
  },
  {
    ...kernels,
    name: "kernels_threads",
    rustFlags: [
      "-Ctarget-feature=+simd128,+relaxed-simd,+atomics,+bulk-memory,+mutable-globals",
      // Instances in several threads share one memory; wasm-bindgen wants the four exports.
      ...[
        "--shared-memory",
        "--import-memory",
        "--max-memory=4294967296",
        "--export=__wasm_init_tls",
        "--export=__tls_size",
        "--export=__tls_align",
        "--export=__tls_base",
      ].map((argument) => `-Clink-arg=${argument}`),
    ],
    buildStd: true,
    instructions: ["simd", "relaxed", "atomic"],
  },
  {
    name: "tokenizers",
    crate: "tokenizers",
    library: "tokenizers_wasm",
    rustFlags: ['--cfg=getrandom_backend="wasm_js"'],
    buildStd: false,
    instructions: [],
  },
];
