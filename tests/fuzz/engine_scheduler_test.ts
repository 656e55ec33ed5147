/**
 * A seeded fuzzer of block pool and scheduler, without a backend: random requests, aborts and slow
 * readers under scarce blocks and several policies. A model of the KV cache checks, at every step,
 * that each sequence reads exactly its own history: its tokens, and how each of them attended.
 */
import { assert, assertEquals } from "@std/assert";
import { type AttentionPlan, BLOCK_SIZE, DENSE } from "../../core/engine/backend.ts";
import { BlockPool, hashBlock } from "../../core/engine/kv/block_pool.ts";
import { EventQueue } from "../../core/engine/event_queue.ts";
import { createPolicy } from "../../core/engine/scheduling/policies/mod.ts";
import { fcfs, type Policy } from "../../core/engine/scheduling/policy.ts";
import type { ScheduledStep, StepEntry } from "../../core/engine/scheduling/scheduled_step.ts";
import { Scheduler } from "../../core/engine/scheduling/scheduler.ts";
import { Sequence } from "../../core/engine/sequence.ts";

const STEPS = 150_000;
const KV_BLOCKS = 24;
const BLOCK_BYTES = 100;
const HOST_BYTES = 12 * BLOCK_BYTES;
const LIMITS = { maxRunning: 5, stepTokens: 24, prefillChunk: 10, maxOutputRows: 7 };

const POLICIES: readonly Policy[] = [
  fcfs,
  { name: "newest", refreshSteps: 0, key: ({ id }) => -id },
  { name: "priority", refreshSteps: 0, key: ({ priority }) => -priority },
  { name: "shortest", refreshSteps: 3, key: ({ generatedTokens: n, maxTokens }) => maxTokens - n },
  { name: "fewest", refreshSteps: 1, key: ({ generatedTokens }) => generatedTokens },
  createPolicy("mlfq", 0.1),
  createPolicy("paper", 0.1),
  createPolicy("entropic", 0.1),
];

/** A linear congruential generator: the same numbers on every machine. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor(this.#state / 2 ** 32 * n);
  }

  chance(p: number): boolean {
    return this.below(1 << 20) < p * (1 << 20);
  }
}

/** What a token's KV depends on but tokens. */
const saltOf = (plan: AttentionPlan): number => plan.kind === "mass" ? plan.minBlocks : 0;

class Harness {
  readonly dice: Dice;
  readonly pool: BlockPool;
  readonly scheduler: Scheduler;
  readonly alive = new Set<Sequence>();
  /** Hash of the history up to each slot; shape [KV_BLOCKS * BLOCK_SIZE]. */
  readonly kv = new Float64Array(KV_BLOCKS * BLOCK_SIZE).fill(-1);
  readonly #saved = new Map<object, Float64Array>();
  submitted = 0;
  ended = 0;
  now = 0;

  constructor(seed: number, policy: Policy) {
    this.dice = new Dice(seed);
    const weak = seed % 2 === 0;
    this.pool = new BlockPool(KV_BLOCKS, weak ? (_, tokens, i) => tokens[i]! % 2 : hashBlock);
    this.scheduler = new Scheduler(this.pool, {
      ...LIMITS,
      policy,
      hostBytes: seed % 3 === 0 ? 0 : HOST_BYTES,
      blockBytes: BLOCK_BYTES,
    });
  }

  /** Prompts come in four families, so that prefixes are often shared. */
  submit(): void {
    const { dice } = this;
    const maxTokens = dice.below(60);
    const length = 1 + dice.below(KV_BLOCKS * BLOCK_SIZE / (dice.chance(0.1) ? 1 : 5) - maxTokens);
    const family = dice.below(4), own = dice.below(length + 1);
    const prompt = Array.from(
      { length },
      (_, i) => i < own ? family : dice.below(50),
    );
    const sequence: Sequence = new Sequence(++this.submitted, {
      prompt,
      maxTokens,
      sampling: { seed: 0n },
      priority: dice.below(4),
      promptLogprobs: dice.chance(0.05),
    }, {
      events: new EventQueue(2, {
        drained: () => this.scheduler.resume(sequence),
        abandoned: () => {},
      }),
      arrival: this.now,
      endTokens: [],
    });
    this.alive.add(sequence);
    this.scheduler.add(sequence, this.now);
  }

  /** Any sequence that has not ended. */
  anyone(): Sequence | undefined {
    return [...this.alive][this.dice.below(this.alive.size)];
  }

  end(sequence: Sequence, how: "remove" | "discard" = "remove"): void {
    assert(this.alive.delete(sequence), "a sequence ends once");
    this.scheduler[how](sequence);
    this.ended++;
  }

  async step(): Promise<void> {
    const { dice } = this;
    if (this.alive.size < 30 && dice.chance(0.25)) this.submit();
    if (dice.chance(0.02)) {
      const victim = this.anyone();
      if (victim !== undefined) this.end(victim, dice.chance(0.5) ? "remove" : "discard");
    }
    await this.advance();
  }

  /** One step of the engine, with checks on both sides. */
  async advance(): Promise<void> {
    const { dice } = this;
    const step = this.scheduler.schedule(this.now += 5);
    this.#checkStep(step);
    this.#move(step);
    step.entries.forEach((entry, i) => this.#compute(entry, step.batch[i]!.attention));
    for (const entry of step.entries) await this.#after(entry);
    const decodes = step.entries.length, prefillTokens = dice.below(10);
    this.scheduler.observe({ decodes, prefillTokens, milliseconds: 5, draws: [] });
    this.#checkPool();
  }

  #slot(sequence: Sequence, position: number): number {
    const block = sequence.blocks[Math.floor(position / BLOCK_SIZE)]!;
    return block * BLOCK_SIZE + position % BLOCK_SIZE;
  }

  #move(step: ScheduledStep): void {
    for (const { blocks, copy } of step.swapOuts) {
      const content = new Float64Array(blocks.length * BLOCK_SIZE);
      blocks.forEach((block, i) => {
        content.set(this.kv.subarray(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE), i * BLOCK_SIZE);
      });
      this.#saved.set(copy, content);
    }
    for (const { blocks, skip, copy } of step.swapIns) {
      const content = this.#saved.get(copy)!;
      blocks.forEach((block, i) => {
        const from = (skip + i) * BLOCK_SIZE;
        this.kv.set(content.subarray(from, from + BLOCK_SIZE), block * BLOCK_SIZE);
      });
      this.#saved.delete(copy);
    }
  }

  #compute({ sequence, count }: StepEntry, plan: AttentionPlan): void {
    const { attention, tokens, computed } = sequence;
    let history = 0;
    for (let at = 0; at < computed + count; at++) {
      if (at >= computed) assertEquals(plan, attention.planAt(at));
      history = (Math.imul(history, 31) + tokens[at]! + 1 + 97 * saltOf(attention.planAt(at))) >>>
        0;
      const slot = this.#slot(sequence, at);
      if (at < computed) assertEquals(this.kv[slot], history, `position ${at} of ${sequence.id}`);
      else this.kv[slot] = history;
    }
  }

  async #after({ sequence, count, rows }: StepEntry): Promise<void> {
    const { dice } = this;
    for (let i = 0; i < rows && sequence.promptRowsLeft > 0; i++) {
      const next = sequence.promptLogprobs.length + 1;
      if (sequence.computed + i + 1 === next) {
        sequence.promptLogprobs.push({ token: sequence.tokens[next]!, logprob: 0, top: [] });
      }
    }
    this.scheduler.commit(sequence, count);
    if (sequence.uncomputedTokens > 0) return;
    assertEquals(sequence.promptRowsLeft, 0);
    if (sequence.generatedTokens === sequence.maxTokens || dice.chance(0.01)) {
      return this.end(sequence);
    }
    sequence.append(dice.chance(0.5) ? 0 : dice.below(50));
    if (dice.chance(0.3)) sequence.attention.plan(sequence.length - 1, this.#anyPlan(), "mass");
    sequence.events.push({
      type: "token",
      token: 0,
      logprob: 0,
      entropy: 0,
      varentropy: 0,
      endProbability: 0,
      temperature: 1,
      top: [],
    });
    if (dice.chance(0.9)) await this.catchUp(sequence);
  }

  /** Dense, or one of two that are not. */
  #anyPlan(): AttentionPlan {
    const kind = this.dice.below(3);
    return kind === 0 ? DENSE : { kind: "mass", mass: 0.9, minBlocks: 3 + kind };
  }

  /** Its reader reads all there is. */
  async catchUp(sequence: Sequence): Promise<void> {
    do await sequence.events.next(); while (sequence.events.stalled);
  }

  async wakeReaders(): Promise<void> {
    for (const sequence of this.alive) {
      if (sequence.events.stalled && this.dice.chance(0.2)) await this.catchUp(sequence);
    }
  }

  #checkStep(step: ScheduledStep): void {
    const counts = step.entries.map(({ count }) => count);
    const total = counts.reduce((sum, count) => sum + count, 0);
    assert(total <= LIMITS.stepTokens);
    assert(step.entries.reduce((sum, { rows }) => sum + rows, 0) <= LIMITS.maxOutputRows);
    assert(step.entries.length <= LIMITS.maxRunning);
    const prefilling = step.entries.filter(({ sequence }) => sequence.prefilling);
    const prefill = prefilling.reduce((sum, { count }) => sum + count, 0);
    assert(prefilling.length === counts.length || prefill <= LIMITS.prefillChunk);
    const written = new Set<number>();
    for (const { sequence, count } of step.entries) {
      assert(sequence.resident && !sequence.events.stalled && count >= 1);
      assert(sequence.blocks.length * BLOCK_SIZE >= sequence.computed + count);
      for (const at of [sequence.computed, sequence.computed + count - 1]) {
        const block = sequence.blocks[Math.floor(at / BLOCK_SIZE)]!;
        assertEquals(this.pool.references(block), 1, "what is written is not shared");
        written.add(block);
      }
    }
    const ready = [...this.alive].some(({ events }) => !events.stalled);
    assert(!ready || !step.empty, "where something can run, something does");
  }

  #checkPool(): void {
    const holders = new Map<number, Sequence[]>();
    let hostBytes = 0;
    for (const sequence of this.alive) {
      assertEquals(sequence.resident, this.scheduler.resident.includes(sequence));
      assert(sequence.resident || sequence.blocks.length === 0);
      hostBytes += sequence.host?.bytes ?? 0;
      for (const block of sequence.blocks) {
        holders.set(block, [...holders.get(block) ?? [], sequence]);
      }
    }
    assert(hostBytes <= HOST_BYTES);
    assertEquals(this.scheduler.waiting + this.scheduler.resident.length, this.alive.size);
    assertEquals(holders.size + this.pool.free, KV_BLOCKS);
    for (const [block, [first, ...others]] of holders) {
      assertEquals(this.pool.references(block), 1 + others.length);
      for (const other of others) {
        const end = (first!.blocks.indexOf(block) + 1) * BLOCK_SIZE;
        assertEquals(other.blocks.indexOf(block), end / BLOCK_SIZE - 1);
        assert(end <= first!.computed && end <= other.computed);
        assert(end <= Math.min(first!.attention.prunedFrom, other.attention.prunedFrom));
        for (let i = 0; i < end; i++) assert(first!.tokens[i] === other.tokens[i]);
      }
    }
  }
}

for (const [index, policy] of POLICIES.entries()) {
  Deno.test(`Scheduler keeps its invariants over random steps under ${policy.name}`, async () => {
    const runs = 6, steps = STEPS / POLICIES.length / runs;
    for (let run = 0; run < runs; run++) {
      const seed = 100 * index + run;
      const harness = new Harness(seed, policy);
      try {
        for (let step = 0; step < steps; step++) {
          await harness.step();
          if (step % 8 === 0) await harness.wakeReaders();
        }
        for (let left = 50_000; harness.alive.size > 0; left--) {
          assert(left > 0, "everybody ends");
          await harness.advance();
          await harness.wakeReaders();
        }
      } catch (error) {
        throw new Error(`Failed under seed ${seed}`, { cause: error });
      }
      assertEquals(harness.ended, harness.submitted);
      assertEquals(harness.pool.free, KV_BLOCKS);
      assert(harness.scheduler.preemptions > 0, "blocks were scarce");
    }
  });
}
