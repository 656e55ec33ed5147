/** What a step took, told to those whom it concerns: its sequences, the counters, the policy. */
import { addCost, NO_COST, shareCost } from "../entropic/cost.ts";
import type { Draw } from "../entropic/hazard.ts";
import type { StepObservation } from "../entropic/workload.ts";
import { addAttention } from "./attention/attention_totals.ts";
import { type AttentionStats, type Backend, type ForwardResult, NO_ATTENTION } from "./backend.ts";
import type { EngineCounters } from "./engine_counters.ts";
import type { ScheduledStep } from "./scheduling/scheduled_step.ts";
import type { Sequence } from "./sequence.ts";

export class StepAccount {
  readonly #step: ScheduledStep;
  readonly #backend: Backend;
  readonly #counters: EngineCounters;
  readonly #draws: Draw[] = [];
  #decodes = 0;
  #prefillTokens = 0;
  #milliseconds = 0;

  constructor(step: ScheduledStep, backend: Backend, counters: EngineCounters) {
    this.#step = step;
    this.#backend = backend;
    this.#counters = counters;
    for (const { sequence, count } of step.entries) {
      if (sequence.prefilling) this.#prefillTokens += count;
      else this.#decodes++;
    }
  }

  /** Shares the cost of the forward pass out over the sequences. */
  charge({ attention }: ForwardResult, milliseconds: number): void {
    this.#milliseconds = milliseconds;
    const { entries } = this.#step;
    const work = entries.map(({ sequence, count, rows, index }) => {
      const stats = attention[index] ?? NO_ATTENTION;
      this.#attended(sequence, count, stats);
      return {
        tokens: count,
        position: sequence.computed,
        rows,
        ...(stats.macsTotal > 0 && { attentionMacs: stats.macs }),
        kvBytes: stats.bytesRead,
      };
    });
    const { weightBytes } = this.#backend.describe();
    const spent = { weightBytes, seconds: milliseconds / 1000 };
    const shares = shareCost(this.#backend.config, work, spent);
    entries.forEach(({ sequence }, i) => sequence.charge(shares[i] ?? NO_COST));
    this.#counters.cost = shares.reduce(addCost, this.#counters.cost);
  }

  /** A sequence's tokens attended. Those that are computed again are in the engine's totals only. */
  #attended(sequence: Sequence, count: number, stats: AttentionStats): void {
    const { attention, computed, prefilling, promptTokens } = sequence;
    const plan = attention.planAt(computed);
    const counters = this.#counters;
    counters.attention = addAttention(counters.attention, stats, count, plan.kind !== "dense");
    attention.charge(stats, plan, !prefilling && computed >= promptTokens);
  }

  /** A sequence is about to observe a distribution and draw. @returns Takes the token drawn. */
  draw(sequence: Sequence): (token: number) => void {
    const { evidence, generatedTokens: age, request } = sequence;
    const couldEnd = request.ignoreEos !== true && age >= Math.max(1, request.minTokens ?? 0);
    if (!couldEnd) return () => {};
    return (token) => this.#draws.push({ age, evidence, ended: sequence.stopsAt(token) });
  }

  /** How the step went. */
  get observation(): StepObservation {
    const decodes = this.#decodes, prefillTokens = this.#prefillTokens;
    return { decodes, prefillTokens, milliseconds: this.#milliseconds, draws: this.#draws };
  }
}
