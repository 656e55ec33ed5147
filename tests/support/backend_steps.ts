/** Steps of a backend as its tests run them, whichever backend it is. */
import {
  type AttentionPlan,
  type Backend,
  DENSE,
  type ForwardResult,
  type LogitStats,
  type SequenceInput,
} from "../../core/engine/backend.ts";

/** Token ids without a pattern, below 200. */
export function text(count: number, seed = 1): number[] {
  return Array.from({ length: count }, (_, i) => (i * i * 31 + i * 7 * seed + seed) % 200);
}

/** Consecutive KV blocks. */
export function blocks(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

/** One sequence's part of a step, attending densely. */
export function part(
  tokens: number[],
  position: number,
  blockTable: number[],
  output: SequenceInput["output"] = "last",
) {
  return { tokens, position, blockTable, attention: DENSE, output };
}

export interface FullRow extends LogitStats {
  readonly logits: Float32Array;
}

/** The statistics of every output row of the latest step, and its logits. */
export async function rowsOf(backend: Backend, result: ForwardResult): Promise<FullRow[]> {
  const logits = await Promise.all(result.rows.map((_, row) => backend.logits(row)));
  return result.rows.map((stats, row) => ({ ...stats, logits: logits[row]! }));
}

/** What a prompt of `tokens` gives after its last token, run in steps of `chunk`. */
export async function prefill(
  backend: Backend,
  tokens: number[],
  blockTable: number[],
  chunk: number,
): Promise<FullRow> {
  let result: ForwardResult | undefined;
  for (let position = 0; position < tokens.length; position += chunk) {
    const step = tokens.slice(position, position + chunk);
    const last = position + chunk >= tokens.length;
    result = await backend.forward([part(step, position, blockTable, last ? "last" : "none")]);
  }
  return (await rowsOf(backend, result!))[0]!;
}

/** Reads a prompt densely, all but its last token, in steps of `chunk`. */
export async function readPrompt(
  backend: Backend,
  prompt: number[],
  blockTable: number[],
  chunk = 64,
): Promise<void> {
  for (let position = 0; position < prompt.length - 1; position += chunk) {
    const tokens = prompt.slice(position, Math.min(position + chunk, prompt.length - 1));
    await backend.forward([part(tokens, position, blockTable, "none")]);
  }
}

/** A prompt's last token under a plan. */
export function lastOf(prompt: number[], blockTable: number[], attention: AttentionPlan) {
  return { ...part(prompt.slice(-1), prompt.length - 1, blockTable), attention };
}
