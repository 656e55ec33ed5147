/** Runs a text again, densely and alone, to see whether the engine's distributions were the model's. */
import { type Backend, BLOCK_SIZE, DENSE } from "../../../core/engine/backend.ts";
import type { StoredPrefix } from "./stored_prefix.ts";
import type { Answer } from "./trial.ts";

/**
 * Entropies of the distributions after each token of `text` from `from` on, under dense attention.
 *
 * @param text Begins with the prefix, or has nothing of it in its blocks.
 * @returns Shape [text.length - from], nats.
 */
export async function denseEntropies(
  backend: Backend,
  prefix: StoredPrefix,
  text: Uint32Array,
  from: number,
): Promise<number[]> {
  const blockTable = Array.from({ length: Math.ceil(text.length / BLOCK_SIZE) }, (_, i) => i);
  const stored = prefix.tokens.every((token, i) => token === text[i]) ? prefix.tokens.length : 0;
  await backend.writeBlocks(
    blockTable.slice(0, stored / BLOCK_SIZE),
    stored > 0 ? prefix.content : new Uint8Array(),
  );
  const { maxOutputRows, maxBatchTokens } = backend.limits;
  const step = Math.min(maxOutputRows, maxBatchTokens);
  const entropies: number[] = [];
  for (let position = stored; position < text.length; position += step) {
    const tokens = text.subarray(position, position + step);
    const input = { tokens, position, blockTable, attention: DENSE, output: "all" as const };
    const { rows } = await backend.forward([input]);
    entropies.push(...rows.slice(Math.max(0, from - position)).map(({ entropy }) => entropy));
  }
  return entropies;
}

/** Whether each token of an answer was drawn from the dense model's distribution, to the bit. */
export async function isDenseModel(
  backend: Backend,
  prefix: StoredPrefix,
  prompt: ArrayLike<number>,
  { tokens }: Answer,
): Promise<boolean> {
  const generated = tokens.map(({ token }) => token);
  const text = Uint32Array.of(...Array.from(prompt), ...generated.slice(0, -1));
  const entropies = await denseEntropies(backend, prefix, text, prompt.length - 1);
  return tokens.every(({ entropy }, i) => entropy === entropies[i]);
}
