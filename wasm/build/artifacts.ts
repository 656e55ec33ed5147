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
    name: "tokenizers",
    crate: "tokenizers",
    library: "tokenizers_wasm",
    rustFlags: ['--cfg=getrandom_backend="wasm_js"'],
    buildStd: false,
    instructions: [],
  },
];
