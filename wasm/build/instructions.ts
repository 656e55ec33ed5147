/**
 * Looks at the instructions of a module. Flags get lost on the way to the compiler: variables of the
 * environment override those of files. Then a module works, but slowly, or it does not load where it
 * should; so the module itself has to say what it holds.
 */
// Not in the import map: nothing but this needs its hundred megabytes. Its optimizer is not used: it
// makes the kernels larger by 8 %, the tokenizers smaller by 5 %, and neither faster.
import binaryen from "npm:binaryen@132.0.0";

export type InstructionKind = "simd" | "relaxed" | "atomic";

/** How instructions of a kind look in the text format. */
const INSTRUCTIONS: Readonly<Record<InstructionKind, RegExp>> = {
  simd: /\((v128|[if](8x16|16x8|32x4|64x2))\./,
  relaxed: /\(\w+\.relaxed_/,
  atomic: /\(\w+\.atomic\./,
};

/** The kinds of instructions that a module has. */
export function instructionsOf(bytes: Uint8Array): InstructionKind[] {
  const module = binaryen.readBinary(bytes);
  try {
    const text = module.emitText();
    return (["simd", "relaxed", "atomic"] as const).filter((kind) => INSTRUCTIONS[kind].test(text));
  } finally {
    module.dispose();
  }
}
