/**
 * The KV blocks of a backend: reference counts, prefix sharing, and a free list that gives up the
 * least recently used prefixes first, but blocks without a prefix before them. It moves no data; it
 * only says which block holds what.
 *
 * A full block can be found again by the pair (prefix of its parent, its 16 tokens). Each distinct
 * pair gets a number that is never used twice, so a number names one exact chain of tokens from the
 * start of a sequence, and comparing the pair verifies the whole chain, whatever the hash says.
 */
import { BLOCK_SIZE } from "../backend.ts";

/** Names a chain of full blocks; a root names the empty chain under a salt. */
export type PrefixId = number;

/** 32-bit hash of a block: its parent's prefix and the `BLOCK_SIZE` tokens from `start` on. */
export type BlockHash = (parent: PrefixId, tokens: ArrayLike<number>, start: number) => number;

/** FNV-1a over 32-bit words; a collision costs a comparison, nothing else. */
export const hashBlock: BlockHash = (parent, tokens, start) => {
  let hash = Math.imul(0x811c9dc5 ^ parent, 0x01000193);
  for (let i = start; i < start + BLOCK_SIZE; i++) {
    hash = Math.imul(hash ^ (tokens[i] as number), 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
};

/** The cached blocks that start a sequence. They are not reserved until `acquire`. */
export interface PrefixMatch {
  readonly blocks: readonly number[];
  readonly prefix: PrefixId;
  /** How many of them are free, so that acquiring them shrinks the free list. */
  readonly idle: number;
}

const NONE = -1;

export class BlockPool {
  readonly total: number;
  readonly #hash: BlockHash;
  readonly #roots = new Map<string, PrefixId>();
  #nextPrefix = 1;

  /** Sequences that hold each block. */
  readonly #references: Int32Array;
  /** What a block holds; prefix 0 when it cannot be found again. */
  readonly #prefix: Float64Array;
  readonly #parent: Float64Array;
  readonly #hashes: Uint32Array;
  readonly #tokens: Uint32Array;
  /** Hash to the first block with it; `#sibling` goes on from there. */
  readonly #buckets = new Map<number, number>();
  readonly #sibling: Int32Array;

  /** The free list, doubly linked through a sentinel at index `total`: next to be used first. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  #free: number;
  #cached = 0;

  constructor(total: number, hash: BlockHash = hashBlock) {
    this.total = total;
    this.#hash = hash;
    this.#references = new Int32Array(total);
    this.#prefix = new Float64Array(total);
    this.#parent = new Float64Array(total);
    this.#hashes = new Uint32Array(total);
    this.#tokens = new Uint32Array(total * BLOCK_SIZE);
    this.#sibling = new Int32Array(total).fill(NONE);
    this.#next = Int32Array.from({ length: total + 1 }, (_, i) => (i + 1) % (total + 1));
    this.#previous = Int32Array.from({ length: total + 1 }, (_, i) => (i + total) % (total + 1));
    this.#free = total;
  }

  /** Blocks that no sequence holds. */
  get free(): number {
    return this.#free;
  }

  /** Free blocks that still hold a reusable prefix. */
  get cached(): number {
    return this.#cached;
  }

  /** How many sequences hold a block. */
  references(block: number): number {
    return this.#references[block] as number;
  }

  /** The chain that a committed block ends; 0 for any other. */
  prefixOf(block: number): PrefixId {
    return this.#prefix[block] as number;
  }

  /** The empty chain for whatever else decides KV content: model, attention plan. */
  root(salt: string): PrefixId {
    let root = this.#roots.get(salt);
    if (root === undefined) this.#roots.set(salt, root = this.#nextPrefix++);
    return root;
  }

  /** The longest cached chain that starts `tokens`, at most `limit` blocks. */
  match(root: PrefixId, tokens: ArrayLike<number>, limit: number): PrefixMatch {
    const blocks: number[] = [];
    let prefix = root, idle = 0;
    while (blocks.length < limit) {
      const block = this.#find(prefix, tokens, blocks.length * BLOCK_SIZE);
      if (block === NONE) break;
      blocks.push(block);
      prefix = this.prefixOf(block);
      if (this.references(block) === 0) idle++;
    }
    return { blocks, prefix, idle };
  }

  /** Adds a holder to blocks that `match` has found, with nothing in between. */
  acquire(blocks: readonly number[]): void {
    for (const block of blocks) this.#hold(block);
  }

  /**
   * Takes the free block whose content is the least likely to be wanted again.
   *
   * @throws {RangeError} No block is free.
   */
  allocate(): number {
    const block = this.#next[this.total] as number;
    if (block === this.total) {
      throw new RangeError(`Cannot allocate a KV block: all ${this.total} are in use`);
    }
    this.#hold(block);
    this.#forget(block);
    return block;
  }

  /** Removes a holder from each block of a table. The end of a chain becomes free before its start. */
  release(table: readonly number[]): void {
    for (let i = table.length - 1; i >= 0; i--) {
      const block = table[i] as number;
      const left = this.references(block) - 1;
      if (left < 0) throw new RangeError(`Cannot release KV block ${block}: nobody holds it`);
      this.#references[block] = left;
      if (left === 0) this.#setFree(block);
    }
  }

  /**
   * Makes a block, held and now full, findable for later sequences.
   *
   * @param parent The chain before it.
   * @param start Index in `tokens` of the block's first token.
   * @returns The block to use from now on: another one if that already holds the same chain.
   */
  commit(block: number, parent: PrefixId, tokens: ArrayLike<number>, start: number): number {
    const existing = this.#find(parent, tokens, start);
    if (existing !== NONE) {
      if (existing !== block) {
        this.#hold(existing);
        this.release([block]);
      }
      return existing;
    }
    this.#forget(block);
    const hash = this.#hash(parent, tokens, start);
    this.#prefix[block] = this.#nextPrefix++;
    this.#parent[block] = parent;
    this.#hashes[block] = hash;
    for (let i = 0; i < BLOCK_SIZE; i++) {
      this.#tokens[block * BLOCK_SIZE + i] = tokens[start + i] as number;
    }
    this.#sibling[block] = this.#buckets.get(hash) ?? NONE;
    this.#buckets.set(hash, block);
    return block;
  }

  /** Keeps later sequences from finding these held blocks: their content is not to be trusted. */
  forget(table: readonly number[]): void {
    for (const block of table) this.#forget(block);
  }

  #find(parent: PrefixId, tokens: ArrayLike<number>, start: number): number {
    let block = this.#buckets.get(this.#hash(parent, tokens, start)) ?? NONE;
    while (block !== NONE && !this.#holds(block, parent, tokens, start)) {
      block = this.#sibling[block] as number;
    }
    return block;
  }

  #holds(block: number, parent: PrefixId, tokens: ArrayLike<number>, start: number): boolean {
    if (this.#parent[block] !== parent) return false;
    for (let i = 0; i < BLOCK_SIZE; i++) {
      if (this.#tokens[block * BLOCK_SIZE + i] !== tokens[start + i]) return false;
    }
    return true;
  }

  #hold(block: number): void {
    const holders = this.references(block);
    this.#references[block] = holders + 1;
    if (holders > 0) return;
    const next = this.#next[block] as number, previous = this.#previous[block] as number;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.#free--;
    if (this.prefixOf(block) !== 0) this.#cached--;
  }

  /** A block worth finding again joins the end of the free list, any other its start. */
  #setFree(block: number): void {
    const worth = this.prefixOf(block) !== 0;
    const next = worth ? this.total : this.#next[this.total] as number;
    const previous = this.#previous[next] as number;
    this.#next[previous] = block;
    this.#previous[block] = previous;
    this.#next[block] = next;
    this.#previous[next] = block;
    this.#free++;
    if (worth) this.#cached++;
  }

  /** Takes a held block out of the index. */
  #forget(block: number): void {
    if (this.prefixOf(block) === 0) return;
    const hash = this.#hashes[block] as number;
    const after = this.#sibling[block] as number;
    let before = this.#buckets.get(hash) as number;
    if (before === block) {
      if (after === NONE) this.#buckets.delete(hash);
      else this.#buckets.set(hash, after);
    } else {
      while (this.#sibling[before] !== block) before = this.#sibling[before] as number;
      this.#sibling[before] = after;
    }
    this.#prefix[block] = 0;
    this.#parent[block] = 0;
    this.#sibling[block] = NONE;
  }
}
