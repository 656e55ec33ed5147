/** What a step took, told to those whom it concerns: its sequences, the counters, the policy. */
import { addCost, NO_COST, shareCost } from "../entropic/cost.ts";
import type { Draw } from "../entropic/hazard.ts";
import type { StepObservation } from "../entropic/workload.ts";
import type { Backend, ForwardResult } from "./backend.ts";
import type { EngineCounters } from "./engine_counters.ts";
import type { ScheduledStep } from "./scheduled_step.ts";
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
    const work = entries.map(({ sequence, count, rows }, i) => {
      const { blocksRead = 0, blocksTotal = 0, bytesRead = 0 } = attention[i] ?? {};
      return {
        tokens: count,
        position: sequence.computed,
        rows,
        attended: blocksTotal > 0 ? blocksRead / blocksTotal : 1,
        kvBytes: bytesRead,
      };
    });
    const { weightBytes } = this.#backend.describe();
    const spent = { weightBytes, seconds: milliseconds / 1000 };
    const shares = shareCost(this.#backend.config, work, spent);
    entries.forEach(({ sequence }, i) => sequence.charge(shares[i] ?? NO_COST));
    this.#counters.cost = shares.reduce(addCost, this.#counters.cost);
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
