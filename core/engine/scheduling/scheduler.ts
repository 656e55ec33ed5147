/**
 * Continuous batching: picks, for each step, the sequences that run and the tokens they run on.
 * Decoding sequences come first and cost a token each; prompts share the rest in bounded chunks, so
 * that neither starves. A sequence that loses its blocks keeps its tokens and its place.
 *
 * Changes sequences and pool, synchronously; knows nothing of tensors.
 */
import { FIRST_WORKLOAD, observeStep, type StepObservation } from "../../entropic/workload.ts";
import { BLOCK_SIZE } from "../backend.ts";
import type { BlockPool } from "../kv/block_pool.ts";
import { type Policy, runsBefore } from "./policy.ts";
import { canRun, Residents } from "./residents.ts";
import { ScheduledStep, type StepEntry } from "./scheduled_step.ts";
import type { Sequence } from "../sequence.ts";
import { chooseRoot, commonBlocks, shareFullBlocks } from "../kv/sequence_blocks.ts";
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
  readonly #residents: Residents;
  readonly #waiting: WaitingQueue<Sequence>;
  /** Sequences without blocks that cannot run now: readers too slow, or a leader ahead. */
  readonly #parked = new Set<Sequence>();
  readonly #pool: BlockPool;
  readonly #options: SchedulerOptions;
  #workload = FIRST_WORKLOAD;

  constructor(pool: BlockPool, options: SchedulerOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#waiting = new WaitingQueue(Math.max(1, options.policy.refreshSteps));
    this.#residents = new Residents(pool, options, (victim) => this.#requeue(victim));
  }

  /** Sequences that hold KV blocks; in order during a step. */
  get resident(): readonly Sequence[] {
    return this.#residents.list;
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
    return this.#residents.preemptions;
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
    if (sequence.resident) {
      this.#residents.release(sequence);
      this.#freeFollowers(sequence);
    }
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
    this.#residents.dropHostCopy(sequence);
  }

  /** Takes note of how a step went, for the policy. */
  observe(step: StepObservation): void {
    const memory = { blocks: this.#pool.total, short: this.#residents.short };
    this.#workload = observeStep(this.#workload, step, memory);
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

  /**
   * Decides the step after one that is under way, where nothing that this one may tell changes who
   * runs in it, but for those who end: all who can run do so already, nobody waits, blocks suffice,
   * and each goes on with a token that the step itself draws.
   *
   * @returns `undefined` where that is not so, or nobody goes on.
   */
  scheduleAfter(step: ScheduledStep, now: number): ScheduledStep | undefined {
    if (this.waiting > 0) return undefined;
    const running = step.entries.filter(({ sequence }) => canRun(sequence));
    if (running.length < this.resident.filter(canRun).length) return undefined;
    if (!running.every(isForeseeable)) return undefined;
    const next = new ScheduledStep(now, 0, 0);
    for (const entry of running) {
      const { sequence } = entry;
      if (sequence.generatedTokens + 1 >= sequence.maxTokens) continue;
      if (!this.#residents.reserveAhead(sequence)) return undefined;
      next.follow(entry);
    }
    return next.empty ? undefined : next;
  }

  /** Counts `count` more positions as computed, and shares the blocks that they fill. */
  commit(sequence: Sequence, count: number): void {
    sequence.computed += count;
    shareFullBlocks(this.#pool, sequence);
    const sharesNoMore = sequence.committed >= sequence.shareableBlocks;
    if (!sequence.prefilling || sharesNoMore) this.#freeFollowers(sequence);
  }

  /** Order keys of this step. */
  #order(now: number): void {
    const { policy } = this.#options;
    const key = (sequence: Sequence) => policy.key(sequence, now, this.#workload);
    this.#residents.order(key);
    if (policy.refreshSteps > 0) this.#waiting.refresh(key);
  }

  /** Gives places to waiting sequences in order. One that does not fit yet holds up those behind. */
  #admit(step: ScheduledStep): void {
    for (;;) {
      const next = this.#waiting.peek();
      if (next === undefined) return;
      if (this.#residents.aheadOf(next) >= this.#options.maxRunning) return;
      if (this.#isHeldBack(next)) continue;
      const find = () => this.#pool.match(next.root, next.tokens, next.reusableBlocks);
      if (!this.#residents.admit(next, find, step)) return;
      this.#waiting.remove(next);
    }
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
    return this.resident.find((sequence) => {
      if (!sequence.prefilling || !canRun(sequence) || sequence.root !== next.root) return false;
      if (!runsBefore(sequence, next)) return false;
      const limit = Math.min(next.reusableBlocks, sequence.shareableBlocks);
      return commonBlocks(sequence.tokens, next.tokens, limit) * BLOCK_SIZE > sequence.computed;
    });
  }

  #decode(sequence: Sequence, step: ScheduledStep): void {
    if (sequence.prefilling || !this.#residents.reserve(sequence, step)) return;
    if (step.tokensLeft > 0 && step.rowsLeft > 0) step.add(sequence, 1, "last");
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

  /** One that has lost its blocks waits in its old place to get them back. */
  #requeue(victim: Sequence): void {
    this.#freeFollowers(victim);
    this.#waiting.push(victim);
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

/**
 * Whether a sequence's next token needs nobody to read the step: the step draws it, it attends densely,
 * and no other row of it is asked for.
 */
function isForeseeable({ sequence, draw, rows }: StepEntry): boolean {
  return draw !== undefined && rows === 1 && !sequence.attention.chosen;
}

/** Whether it has ever been given blocks. */
export function hasStarted(sequence: Sequence): boolean {
  return sequence.milestones.started !== undefined;
}
