/** The block table of a sequence: how it is filled, shared and given back. */
import { BLOCK_SIZE } from "../backend.ts";
import type { BlockPool, PrefixMatch } from "./block_pool.ts";
import type { Sequence } from "../sequence.ts";

/** Blocks that hold this many positions. */
export function blocksFor(positions: number): number {
  return Math.ceil(positions / BLOCK_SIZE);
}

/** What the KV of tokens that attend densely depends on, but the tokens themselves: nothing. */
const SALT = "";

/** Starts the chain of a sequence that holds no blocks. */
export function chooseRoot(pool: BlockPool, sequence: Sequence): void {
  sequence.root = sequence.prefix = pool.root(SALT);
}

/** Gets blocks for all tokens of a sequence: the ones found in the prefix cache, and new ones. */
export function takeBlocks(pool: BlockPool, sequence: Sequence, found: PrefixMatch): void {
  pool.acquire(found.blocks);
  const table = [...found.blocks];
  while (table.length < blocksFor(sequence.length)) table.push(pool.allocate());
  sequence.blocks = table;
  sequence.committed = found.blocks.length;
  sequence.prefix = found.prefix;
  sequence.computed = found.blocks.length * BLOCK_SIZE;
}

/**
 * Puts the blocks that have become full into the prefix cache, up to the first token that was pruned:
 * the cache is for prompts, and a prompt's tokens attend densely.
 */
export function shareFullBlocks(pool: BlockPool, sequence: Sequence): void {
  const end = Math.min(sequence.computed, sequence.attention.prunedFrom);
  while ((sequence.committed + 1) * BLOCK_SIZE <= end) {
    const index = sequence.committed++;
    const start = index * BLOCK_SIZE;
    const held = sequence.blocks[index] as number;
    const block = pool.commit(held, sequence.prefix, sequence.tokens, start);
    sequence.blocks[index] = block;
    sequence.prefix = pool.prefixOf(block);
  }
}

/** Gives all blocks back; nothing counts as computed any more. */
export function dropBlocks(pool: BlockPool, sequence: Sequence): void {
  pool.release(sequence.blocks);
  sequence.blocks = [];
  sequence.computed = sequence.committed = 0;
  sequence.prefix = sequence.root;
}

/** How many full blocks two token arrays have in common from the start, at most `limit`. */
export function commonBlocks(a: Uint32Array, b: Uint32Array, limit: number): number {
  const end = Math.min(limit * BLOCK_SIZE, a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return Math.floor(length / BLOCK_SIZE);
}
