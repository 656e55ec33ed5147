/** A step as the kernels see it: its tokens, their sequences' block tables, and the rotary angles. */
import { BLOCK_SIZE, type Draw, type SequenceInput } from "../core/engine/backend.ts";
import { rowDraws } from "../core/engine/backend_checks.ts";

/** One new token. Its words in `StepInput.tokens`. */
export const TOKEN = `
struct Token {
  id: u32,
  position: u32,
  /** First word of its sequence's block table in \`tables\`. */
  table: u32,
  /** Attention plan: 0 dense, 1 mass, 2 threshold. */
  plan: u32,
  /** Mass or threshold. */
  share: f32,
  /** Least blocks of a pruned plan. */
  least: u32,
};
`;

export const TOKEN_WORDS = 6;
const PLANS = { dense: 0, mass: 1, threshold: 2 } as const;

export interface StepInput {
  /** Words of the tokens, as `TOKEN` has them. */
  readonly tokens: Uint32Array<ArrayBuffer>;
  /** The block tables, one after the other. */
  readonly tables: Uint32Array<ArrayBuffer>;
  /** Which token each output row is of. */
  readonly outputs: Uint32Array<ArrayBuffer>;
  /** How each output row is drawn from, if it is. */
  readonly draws: readonly (Draw | undefined)[];
  /** Most blocks that a token, and a token with output, attends to. */
  readonly blocks: number;
  readonly outputBlocks: number;
  /** Whether a token's attention may be pruned. */
  readonly pruned: boolean;
}

export function stepInput(batch: readonly SequenceInput[]): StepInput {
  const count = batch.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const tokens = new Uint32Array(count * TOKEN_WORDS);
  const floats = new Float32Array(tokens.buffer);
  const tables: number[] = [];
  const outputs: number[] = [];
  let [index, blocks, outputBlocks, pruned] = [0, 0, 0, false];
  for (const { tokens: ids, position, blockTable, attention, output } of batch) {
    const table = tables.length;
    const covered = Math.ceil((position + ids.length) / BLOCK_SIZE);
    for (let i = 0; i < covered; i++) tables.push(blockTable[i] ?? 0);
    blocks = Math.max(blocks, covered);
    if (output !== "none") outputBlocks = Math.max(outputBlocks, covered);
    pruned ||= attention.kind !== "dense";
    for (let i = 0; i < ids.length; i++, index++) {
      const at = index * TOKEN_WORDS;
      tokens.set([ids[i] ?? 0, position + i, table, PLANS[attention.kind]], at);
      if (attention.kind !== "dense") {
        floats[at + 4] = attention.kind === "mass" ? attention.mass : attention.threshold;
        tokens[at + 5] = attention.minBlocks;
      }
      if (output === "all" || (output === "last" && i + 1 === ids.length)) outputs.push(index);
    }
  }
  return {
    tokens,
    tables: Uint32Array.from(tables),
    outputs: Uint32Array.from(outputs),
    draws: batch.flatMap(rowDraws),
    blocks,
    outputBlocks,
    pruned,
  };
}
