/**
 * Continuous batching: picks, for each step, the sequences that run and the tokens they run on.
 * Decoding sequences come first and cost a token each; prompts share the rest in bounded chunks, so
 * that neither starves. When blocks run short, the sequence that would run last gives up its own:
 * to host memory while that has room, else to be computed again. It keeps its tokens and its place.
 *
 * Changes sequences and pool, synchronously; knows nothing of tensors.
 */
import { FIRST_WORKLOAD, observeStep, type StepObservation } from "../entropic/workload.ts";
import { BLOCK_SIZE } from "./backend.ts";
import type { BlockPool, PrefixMatch } from "./block_pool.ts";
import { type Policy, runsBefore } from "./policy.ts";
import { ScheduledStep } from "./scheduled_step.ts";
import type { Sequence } from "./sequence.ts";
import {
  blocksFor,
  chooseRoot,
  commonBlocks,
  dropBlocks,
  shareFullBlocks,
  takeBlocks,
} from "./sequence_blocks.ts";
import { WaitingQueue } from "./waiting_queue.ts";

export interface SchedulerOptions {
  readonly policy: Policy;
  /** Most sequences in one step. */
  readonly maxRunning: number;
  /** Most new tokens in one step. */
  readonly stepTokens: number;
  /** Most prompt tokens in a step in which other sequences decode. */
  readonly prefillChunk: number;
  /** Most output rows in one step. */
  readonly maxOutputRows: number;
  /** Bytes of host memory for the KV of preempted sequences, and of one block. */
  readonly hostBytes: number;
  readonly blockBytes: number;
}

export class Scheduler {
  /** Sequences that hold KV blocks; in order during a step. */
  readonly resident: Sequence[] = [];
  readonly #waiting: WaitingQueue<Sequence>;
  /** Sequences without blocks that cannot run now: readers too slow, or a leader ahead. */
  readonly #parked = new Set<Sequence>();
  readonly #pool: BlockPool;
  readonly #options: SchedulerOptions;
  #hostBytesLeft: number;
  #workload = FIRST_WORKLOAD;
  #preemptions = 0;

  constructor(pool: BlockPool, options: SchedulerOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#waiting = new WaitingQueue(Math.max(1, options.policy.refreshSteps));
    this.#hostBytesLeft = options.hostBytes;
  }

  /** Sequences without KV blocks. */
  get waiting(): number {
    return this.#waiting.size + this.#parked.size;
  }

  /** Those of them that have run before. */
  get preempted(): number {
    let count = 0;
    for (const sequence of this.#waiting) count += Number(hasStarted(sequence));
    for (const sequence of this.#parked) count += Number(hasStarted(sequence));
    return count;
  }

  /** Times that a sequence lost its blocks. */
  get preemptions(): number {
    return this.#preemptions;
  }

  /** Every sequence that has not finished. */
  *sequences(): Generator<Sequence> {
    yield* this.resident;
    yield* this.#waiting;
    yield* this.#parked;
  }

  add(sequence: Sequence, now: number): void {
    sequence.key = this.#options.policy.key(sequence, now, this.#workload);
    chooseRoot(this.#pool, sequence);
    this.#waiting.push(sequence);
  }

  /** Takes a sequence out, whatever it is doing, and frees all that it holds. */
  remove(sequence: Sequence): void {
    if (sequence.phase === "finished") return;
    if (sequence.resident) this.#release(sequence);
    this.#waiting.remove(sequence);
    this.#parked.delete(sequence);
    this.#unfollow(sequence);
    this.dropHostCopy(sequence);
    sequence.phase = "finished";
  }

  /** As `remove`, and keeps the sequence's blocks from serving as a prefix: they may be wrong. */
  discard(sequence: Sequence): void {
    this.#pool.forget(sequence.blocks);
    this.remove(sequence);
  }

  /** Lets a sequence run again whose reader has caught up. */
  resume(sequence: Sequence): void {
    if (sequence.leader === undefined && this.#parked.delete(sequence)) {
      this.#waiting.push(sequence);
    }
  }

  /** Gives back a sequence's host memory; it will be computed again if it was swapped out. */
  dropHostCopy(sequence: Sequence): void {
    this.#hostBytesLeft += sequence.host?.bytes ?? 0;
    sequence.host = undefined;
  }

  /** Takes note of how a step went, for the policy. */
  observe(step: StepObservation): void {
    this.#workload = observeStep(this.#workload, step);
  }

  /** Decides the next step. All blocks that it writes are held by its sequences when it returns. */
  schedule(now: number): ScheduledStep {
    const { stepTokens, maxOutputRows } = this.#options;
    const step = new ScheduledStep(now, stepTokens, maxOutputRows);
    this.#order(now);
    this.#admit(step);
    const running = this.resident.filter(canRun).slice(0, this.#options.maxRunning);
    for (const sequence of running) this.#decode(sequence, step);
    this.#prefill(running, step);
    return step;
  }

  /** Counts `count` more positions as computed, and shares the blocks that they fill. */
  commit(sequence: Sequence, count: number): void {
    sequence.computed += count;
    shareFullBlocks(this.#pool, sequence);
    if (!sequence.prefilling) this.#freeFollowers(sequence);
  }

  /** Order keys of this step. */
  #order(now: number): void {
    const { policy } = this.#options;
    const key = (sequence: Sequence) => policy.key(sequence, now, this.#workload);
    for (const sequence of this.resident) sequence.key = key(sequence);
    this.resident.sort((a, b) => a.key - b.key || a.id - b.id);
    if (policy.refreshSteps > 0) this.#waiting.refresh(key);
  }

  /** Gives places to waiting sequences in order. One that does not fit yet holds up those behind. */
  #admit(step: ScheduledStep): void {
    for (;;) {
      const next = this.#waiting.peek();
      if (next === undefined || !this.#hasSlot(next)) return;
      if (this.#isHeldBack(next)) continue;
      const found = this.#pool.match(next.root, next.tokens, next.reusableBlocks);
      const taken = blocksFor(next.length) - found.blocks.length + found.idle;
      const needed = taken + this.#blocksSpokenFor();
      if (needed <= this.#pool.free) this.#place(next, found, step);
      else if (!this.#makeRoom(needed, next, found, step)) return;
    }
  }

  /** Whether a sequence would be among those that run, were it resident. */
  #hasSlot(next: Sequence): boolean {
    let ahead = 0;
    for (const sequence of this.resident) {
      if (canRun(sequence) && runsBefore(sequence, next)) ahead++;
    }
    return ahead < this.#options.maxRunning;
  }

  /** Parks a sequence that cannot use a place yet: nobody reads it, or a leader is ahead of it. */
  #isHeldBack(next: Sequence): boolean {
    const leader = this.#leaderOf(next);
    if (leader === undefined && !next.events.stalled) return false;
    this.#waiting.remove(next);
    this.#parked.add(next);
    leader?.followers.add(next);
    next.leader = leader;
    return true;
  }

  /** A sequence that runs earlier and is about to compute a block that `next` could reuse. */
  #leaderOf(next: Sequence): Sequence | undefined {
    const limit = next.reusableBlocks;
    return this.resident.find((sequence) =>
      sequence.prefilling && canRun(sequence) && sequence.root === next.root &&
      runsBefore(sequence, next) &&
      commonBlocks(sequence.tokens, next.tokens, limit) * BLOCK_SIZE > sequence.computed
    );
  }

  /**
   * Blocks that are to stay free: one for each resident sequence that may soon want another, lest a
   * newcomer be preempted right away. A newcomer that would be alone may take all.
   */
  #blocksSpokenFor(): number {
    return this.resident.length;
  }

  /** Preempts sequences that run later than `next` until `needed` blocks are free, if that helps. */
  #makeRoom(needed: number, next: Sequence, found: PrefixMatch, step: ScheduledStep): boolean {
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

  /** Resident sequences, first to be preempted first: those that cannot run, then the last in order. */
  *#victims(): Generator<Sequence> {
    const backwards = this.resident.toReversed();
    for (const sequence of backwards) if (!canRun(sequence)) yield sequence;
    for (const sequence of backwards) if (canRun(sequence)) yield sequence;
  }

  /** Makes a waiting sequence resident, with blocks for all its tokens. */
  #place(sequence: Sequence, found: PrefixMatch, step: ScheduledStep): void {
    this.#waiting.remove(sequence);
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
    const after = this.resident.findLastIndex((other) => runsBefore(other, sequence));
    this.resident.splice(after + 1, 0, sequence);
  }

  #decode(sequence: Sequence, step: ScheduledStep): void {
    if (sequence.prefilling || !this.#reserve(sequence, step)) return;
    if (step.tokensLeft > 0 && step.rowsLeft > 0) step.add(sequence, 1, "last");
  }

  /** Gets a block for the next token, from whoever runs last; false when that is the asker. */
  #reserve(sequence: Sequence, step: ScheduledStep): boolean {
    if (!sequence.resident) return false;
    if (blocksFor(sequence.length) <= sequence.blocks.length) return true;
    while (this.#pool.free === 0) {
      const [victim] = this.#victims();
      if (victim === undefined) return false;
      this.#preempt(victim, step);
      if (victim === sequence) return false;
    }
    sequence.blocks.push(this.#pool.allocate());
    return true;
  }

  /** Spends what decoding has left of the step on prompts, in order. */
  #prefill(running: readonly Sequence[], step: ScheduledStep): void {
    const share = step.entries.length === 0 ? step.tokensLeft : this.#options.prefillChunk;
    let left = Math.min(share, step.tokensLeft);
    for (const sequence of running) {
      if (left === 0) return;
      if (!sequence.resident || !sequence.prefilling) continue;
      const allRows = sequence.promptRowsLeft > 0;
      let count = Math.min(left, sequence.uncomputedTokens);
      if (allRows) count = Math.min(count, step.rowsLeft);
      else if (step.rowsLeft === 0) count = Math.min(count, sequence.uncomputedTokens - 1);
      if (count === 0) continue;
      const completes = count === sequence.uncomputedTokens;
      step.add(sequence, count, allRows ? "all" : completes ? "last" : "none");
      left -= count;
    }
  }

  /** Takes a sequence's blocks away; it waits in its old place to get them back. */
  #preempt(victim: Sequence, step: ScheduledStep): void {
    this.#preemptions++;
    const blocks = victim.blocks.slice(0, blocksFor(victim.computed));
    const bytes = blocks.length * this.#options.blockBytes;
    if (blocks.length > 0 && bytes <= this.#hostBytesLeft) {
      this.#hostBytesLeft -= bytes;
      victim.host = { positions: victim.computed, bytes };
      step.swapOuts.push({ sequence: victim, blocks, copy: victim.host });
    }
    this.#release(victim);
    victim.phase = "waiting";
    this.#waiting.push(victim);
  }

  #release(sequence: Sequence): void {
    this.resident.splice(this.resident.indexOf(sequence), 1);
    this.#freeFollowers(sequence);
    dropBlocks(this.#pool, sequence);
  }

  #unfollow(sequence: Sequence): void {
    sequence.leader?.followers.delete(sequence);
    sequence.leader = undefined;
  }

  /** Those who waited for this one's blocks look again. */
  #freeFollowers(leader: Sequence): void {
    for (const follower of leader.followers) {
      follower.leader = undefined;
      this.resume(follower);
    }
    leader.followers.clear();
  }
}

/** Whether it has ever been given blocks. */
export function hasStarted(sequence: Sequence): boolean {
  return sequence.milestones.started !== undefined;
}

/** Whether a resident sequence could use a step. */
function canRun(sequence: Sequence): boolean {
  return !sequence.events.stalled && !sequence.aborted;
}
