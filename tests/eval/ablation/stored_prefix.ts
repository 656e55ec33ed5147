/**
 * A document in the prefix cache at the cost of a copy: its KV is computed once and kept, and any
 * engine that prefills it later gets the kept blocks written in place of a forward pass.
 */
import {
  type Backend,
  BLOCK_SIZE,
  DENSE,
  NO_ATTENTION,
  type SequenceInput,
} from "../../../core/engine/backend.ts";

export interface StoredPrefix {
  /** Whole blocks of them. */
  readonly tokens: Uint32Array;
  /** KV content of its blocks, equal parts. */
  readonly content: Uint8Array;
}

/** Computes the KV of whole blocks of tokens, in the backend's first blocks. */
export async function storePrefix(backend: Backend, tokens: Uint32Array): Promise<StoredPrefix> {
  if (tokens.length % BLOCK_SIZE !== 0) {
    throw new RangeError(`Cannot store ${tokens.length} tokens: multiples of ${BLOCK_SIZE} only`);
  }
  const blockTable = Array.from({ length: tokens.length / BLOCK_SIZE }, (_, block) => block);
  const step = backend.limits.maxBatchTokens;
  for (let position = 0; position < tokens.length; position += step) {
    const part = tokens.subarray(position, position + step);
    await backend.forward([
      { tokens: part, position, blockTable, attention: DENSE, output: "none" },
    ]);
  }
  return { tokens, content: await backend.readBlocks(blockTable) };
}

/**
 * `backend` with a prefix in store.
 *
 * @param onStep Told after each forward pass.
 */
export function withPrefix(
  backend: Backend,
  { tokens, content }: StoredPrefix,
  onStep: () => void = () => {},
): Backend {
  const blockBytes = content.length / Math.max(1, tokens.length / BLOCK_SIZE);
  async function forward(batch: readonly SequenceInput[], signal?: AbortSignal) {
    const [input] = batch;
    if (input === undefined || batch.length > 1 || !isStored(input, tokens)) {
      return await backend.forward(batch, signal);
    }
    const first = input.position / BLOCK_SIZE, end = first + input.tokens.length / BLOCK_SIZE;
    const blocks = Array.from(input.blockTable).slice(first, end);
    await backend.writeBlocks(blocks, content.subarray(first * blockBytes, end * blockBytes));
    return { rows: [], attention: [NO_ATTENTION] };
  }
  return {
    config: backend.config,
    limits: backend.limits,
    ...(backend.pruning && { pruning: backend.pruning }),
    describe: () => backend.describe(),
    async forward(batch, signal) {
      const result = await forward(batch, signal);
      onStep();
      return result;
    },
    logits: (row) => backend.logits(row),
    logitsOf: (row, ids) => backend.logitsOf(row, ids),
    draw: (row, draw) => backend.draw(row, draw),
    tempered: (row, temperature) => backend.tempered(row, temperature),
    copyBlocks: (pairs) => backend.copyBlocks(pairs),
    readBlocks: (blocks) => backend.readBlocks(blocks),
    writeBlocks: (blocks, given) => backend.writeBlocks(blocks, given),
    // An engine disposes of its backend; this one is only lent.
    dispose: () => Promise.resolve(),
  };
}

/**
 * Whether all that the input asks for is KV of whole blocks that are in store. Looks at its new tokens
 * only: of two prompts with the same tokens at the same place, both are taken to be the document.
 */
function isStored(input: SequenceInput, stored: Uint32Array): boolean {
  const { tokens, position, attention, output } = input;
  const whole = position % BLOCK_SIZE === 0 && tokens.length % BLOCK_SIZE === 0;
  if (output !== "none" || attention.kind !== "dense" || !whole) return false;
  if (position + tokens.length > stored.length) return false;
  return Array.from(tokens).every((token, i) => token === stored[position + i]);
}
