/** How matmuls are cut: by the number of tokens of a step. */
import type { Tile } from "./matmul_parameters.ts";

export type Cut = Omit<Tile, "rows">;

/** Small workgroups, which spread a matrix over all of a GPU. The last takes any number of tokens. */
const SPREAD: readonly Cut[] = [1, 4, 8].map((tokens) => ({ tokens, threads: 64, staged: false }));

/** For prompts: they fill a GPU anyway, and many rows share what a workgroup brings to its memory. */
const PROMPT: Cut = { tokens: 8, threads: 256, staged: true };
/** Tokens from which on a step counts as a prompt. */
const PROMPT_TOKENS = 33;

/** Rows of a matrix from which on there is enough for threads of four. */
const MANY_ROWS = 2048;

/**
 * @param tokens Those of the step.
 * @param staging Whether prompts are cut for workgroup memory.
 */
export function cutOf(tokens: number, staging: boolean): Cut {
  if (staging && tokens >= PROMPT_TOKENS) return PROMPT;
  return SPREAD.find((cut) => tokens <= cut.tokens) ?? SPREAD.at(-1) ?? PROMPT;
}

/** Counts of tokens that between them take every cut. */
export const tokensOfCuts = (staging: boolean): readonly number[] => [
  ...SPREAD.map(({ tokens }) => tokens),
  ...staging ? [PROMPT_TOKENS] : [],
];

/**
 * More rows of a thread make better use of each activation that is read, fewer spread a small matrix
 * over more of the GPU.
 */
export const tileOf = (cut: Cut, matrixRows: number): Tile => ({
  ...cut,
  rows: cut.tokens > 1 || matrixRows >= MANY_ROWS ? 4 : 2,
});
