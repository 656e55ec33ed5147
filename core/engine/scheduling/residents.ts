/**
 * The sequences that hold KV blocks, in order of service. When blocks run short, the one that would
 * run last gives up its own: to host memory while that has room, else to be computed again.
 */
import type { BlockPool, PrefixMatch } from "../kv/block_pool.ts";
import { runsBefore } from "./policy.ts";
import type { ScheduledStep } from "./scheduled_step.ts";
import type { Sequence } from "../sequence.ts";
import { blocksFor, dropBlocks, takeBlocks } from "../kv/sequence_blocks.ts";

export class Residents {
  /** In order since `order`. */
  readonly list: Sequence[] = [];
  readonly #pool: BlockPool;
  readonly #blockBytes: number;
  readonly #onPreempt: (victim: Sequence) => void;
  #hostBytesLeft: number;
  #short = false;
  #preemptions = 0;

  /** @param onPreempt Takes a sequence that has just lost its blocks. */
  constructor(
    pool: BlockPool,
    memory: { readonly hostBytes: number; readonly blockBytes: number },
    onPreempt: (victim: Sequence) => void,
  ) {
    this.#pool = pool;
    this.#blockBytes = memory.blockBytes;
    this.#hostBytesLeft = memory.hostBytes;
    this.#onPreempt = onPreempt;
  }

  /** Whether somebody has wanted for blocks since `order`. */
  get short(): boolean {
    return this.#short;
  }

  /** Times that a sequence lost its blocks. */
  get preemptions(): number {
    return this.#preemptions;
  }

  /** Works out all keys anew and sorts by them. */
  order(key: (sequence: Sequence) => number): void {
    this.#short = false;
    for (const sequence of this.list) sequence.key = key(sequence);
    this.list.sort((a, b) => a.key - b.key || a.id - b.id);
  }

  /** How many that can run do so before `next`. */
  aheadOf(next: Sequence): number {
    let ahead = 0;
    for (const sequence of this.list) if (canRun(sequence) && runsBefore(sequence, next)) ahead++;
    return ahead;
  }

  /**
   * Gives a sequence blocks for all its tokens, if need be those of sequences that run later.
   *
   * @param find Looks for those in the prefix cache, again once room was made.
   * @returns Whether it could.
   */
  admit(sequence: Sequence, find: () => PrefixMatch, step: ScheduledStep): boolean {
    const found = find();
    const taken = blocksFor(sequence.length) - found.blocks.length + found.idle;
    const needed = taken + this.#spokenFor();
    if (needed > this.#pool.free) {
      return this.#makeRoom(needed, sequence, found, step) && this.admit(sequence, find, step);
    }
    this.#place(sequence, found, step);
    return true;
  }

  /** Gets a block for the next token, from whoever runs last; false when that is the asker. */
  reserve(sequence: Sequence, step: ScheduledStep): boolean {
    if (!sequence.resident) return false;
    if (blocksFor(sequence.length) <= sequence.blocks.length) return true;
    while (this.#pool.free === 0) {
      this.#short = true;
      const [victim] = this.#victims();
      if (victim === undefined) return false;
      this.#preempt(victim, step);
      if (victim === sequence) return false;
    }
    sequence.blocks.push(this.#pool.allocate());
    return true;
  }

  /** Gets a block for the token after the next, if that takes one, from nobody. */
  reserveAhead(sequence: Sequence): boolean {
    if (blocksFor(sequence.length + 1) <= sequence.blocks.length) return true;
    if (this.#pool.free === 0) return false;
    sequence.blocks.push(this.#pool.allocate());
    return true;
  }

  /** Takes a sequence's blocks away. */
  release(sequence: Sequence): void {
    this.list.splice(this.list.indexOf(sequence), 1);
    dropBlocks(this.#pool, sequence);
  }

  /** Gives back a sequence's host memory; it will be computed again if it was swapped out. */
  dropHostCopy(sequence: Sequence): void {
    this.#hostBytesLeft += sequence.host?.bytes ?? 0;
    sequence.host = undefined;
  }

  /**
   * Blocks that are to stay free: one for each resident sequence that may soon want another, lest a
   * newcomer be preempted right away. A newcomer that would be alone may take all.
   */
  #spokenFor(): number {
    return this.list.length;
  }

  /** Preempts sequences that run later than `next` until `needed` blocks are free, if that helps. */
  #makeRoom(needed: number, next: Sequence, found: PrefixMatch, step: ScheduledStep): boolean {
    this.#short = true;
    const victims: Sequence[] = [];
    const kept = new Set(found.blocks);
    const holders = new Map<number, number>();
    let free = this.#pool.free;
    for (const victim of this.#victims()) {
      if (free >= needed) break;
      if (canRun(victim) && !runsBefore(next, victim)) break;
      victims.push(victim);
      free++; // the block spoken for by the victim
      for (const block of victim.blocks) {
        const count = (holders.get(block) ?? 0) + 1;
        holders.set(block, count);
        if (count === this.#pool.references(block) && !kept.has(block)) free++;
      }
    }
    if (free < needed) return false;
    for (const victim of victims) this.#preempt(victim, step);
    return true;
  }

  /** First to be preempted first: those that cannot run, then the last in order. */
  *#victims(): Generator<Sequence> {
    const backwards = this.list.toReversed();
    for (const sequence of backwards) if (!canRun(sequence)) yield sequence;
    for (const sequence of backwards) if (canRun(sequence)) yield sequence;
  }

  #place(sequence: Sequence, found: PrefixMatch, step: ScheduledStep): void {
    takeBlocks(this.#pool, sequence, found);
    sequence.phase = "resident";
    if (sequence.milestones.started === undefined) {
      sequence.milestones.started = step.now;
      sequence.cachedTokens = sequence.computed;
    }
    const copy = sequence.host;
    if (copy !== undefined && copy.positions > sequence.computed) {
      const blocks = sequence.blocks.slice(sequence.committed, blocksFor(copy.positions));
      step.swapIns.push({ sequence, blocks, skip: sequence.committed, copy });
      sequence.computed = copy.positions;
    }
    this.dropHostCopy(sequence);
    const after = this.list.findLastIndex((other) => runsBefore(other, sequence));
    this.list.splice(after + 1, 0, sequence);
  }

  #preempt(victim: Sequence, step: ScheduledStep): void {
    this.#preemptions++;
    // Of one that came back in this very step, the blocks hold nothing yet: its copy still does.
    const unread = step.cancelSwapIn(victim);
    const blocks = victim.blocks.slice(0, blocksFor(victim.computed));
    const bytes = unread?.bytes ?? blocks.length * this.#blockBytes;
    if (blocks.length > 0 && bytes <= this.#hostBytesLeft) {
      this.#hostBytesLeft -= bytes;
      victim.host = unread ?? { positions: victim.computed, bytes };
      if (!unread) step.swapOuts.push({ sequence: victim, blocks, copy: victim.host });
    }
    this.release(victim);
    victim.phase = "waiting";
    this.#onPreempt(victim);
  }
}

/** Whether a resident sequence could use a step. */
export function canRun(sequence: Sequence): boolean {
  return !sequence.events.stalled && !sequence.aborted;
}
