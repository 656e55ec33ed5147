/** Counters from the engine's start, for `/metrics`. */
import { type Cost, NO_COST } from "../entropic/cost.ts";
import type { BlockPool } from "./kv/block_pool.ts";
import { NO_TOTALS } from "./attention/attention_totals.ts";
import type { AttentionTotals, EngineStats, FinishReason } from "./engine.ts";
import type { Scheduler } from "./scheduling/scheduler.ts";
import type { Sequence } from "./sequence.ts";

export class EngineCounters {
  steps = 0;
  generatedTokens = 0;
  tau = 0;
  cost: Cost = NO_COST;
  attention: AttentionTotals = NO_TOTALS;
  /** Milliseconds in steps, and of them in `Backend.forward`. */
  stepTime = 0;
  forwardTime = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #rebuilds = 0;
  /** Of schedulers that went down with their backend. */
  #pastPreemptions = 0;
  readonly #finished: Record<FinishReason | "error", number> = {
    stop: 0,
    length: 0,
    abort: 0,
    error: 0,
  };

  /** A sequence's prompt has been processed. */
  prefilled(sequence: Sequence): void {
    this.#promptTokens += sequence.promptTokens;
    this.#cachedTokens += sequence.cachedTokens;
  }

  finished(reason: FinishReason | "error"): void {
    this.#finished[reason]++;
  }

  /** The scheduler went down with its backend, and another has taken over. */
  schedulerLost(scheduler: Scheduler): void {
    this.#rebuilds++;
    this.#pastPreemptions += scheduler.preemptions;
  }

  snapshot(
    scheduler: Scheduler,
    pool: BlockPool,
  ): Omit<EngineStats, "attention"> & { readonly attention: AttentionTotals } {
    const { preempted } = scheduler;
    return {
      waiting: scheduler.waiting - preempted,
      running: scheduler.resident.length,
      preempted,
      kvBlocksFree: pool.free,
      kvBlocksCached: pool.cached,
      kvBlocksTotal: pool.total,
      steps: this.steps,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      generatedTokens: this.generatedTokens,
      preemptions: this.#pastPreemptions + scheduler.preemptions,
      finished: { ...this.#finished },
      tau: this.tau,
      cost: this.cost,
      attention: this.attention,
      rebuilds: this.#rebuilds,
      forwardSeconds: this.forwardTime / 1000,
      overheadSeconds: (this.stepTime - this.forwardTime) / 1000,
    };
  }
}
