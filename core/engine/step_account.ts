/** What a step took, told to those whom it concerns: its sequences, the counters, the policy. */
import { addCost, NO_COST, shareCost } from "../entropic/cost.ts";
import type { Draw } from "../entropic/hazard.ts";
import type { StepObservation } from "../entropic/workload.ts";
import type { Backend, ForwardResult } from "./backend.ts";
import type { EngineCounters } from "./engine_counters.ts";
import type { ScheduledStep } from "./scheduled_step.ts";
import type { Sequence } from "./sequence.ts";

/** Shares a step's cost out over its sequences. @param seconds Inside `forward`. */
export function chargeStep(
  step: ScheduledStep,
  { attention }: ForwardResult,
  seconds: number,
  backend: Backend,
  counters: EngineCounters,
): void {
  const work = step.entries.map(({ sequence, count, rows }, i) => {
    const { blocksRead = 0, blocksTotal = 0, bytesRead = 0 } = attention[i] ?? {};
    return {
      tokens: count,
      position: sequence.computed,
      rows,
      attended: blocksTotal > 0 ? blocksRead / blocksTotal : 1,
      kvBytes: bytesRead,
    };
  });
  const { weightBytes } = backend.describe();
  const shares = shareCost(backend.config, work, { weightBytes, seconds });
  step.entries.forEach(({ sequence }, i) => sequence.charge(shares[i] ?? NO_COST));
  counters.cost = shares.reduce(addCost, counters.cost);
}

/** Watches a step for the policy. */
export class StepWatch {
  readonly #decodes: number;
  readonly #prefillTokens: number;
  readonly #draws: Draw[] = [];

  constructor(step: ScheduledStep) {
    let decodes = 0, prefillTokens = 0;
    for (const { sequence, count } of step.entries) {
      if (sequence.prefilling) prefillTokens += count;
      else decodes++;
    }
    this.#decodes = decodes;
    this.#prefillTokens = prefillTokens;
  }

  /** A sequence is about to observe a distribution and draw. @returns Takes the token drawn. */
  draw(sequence: Sequence): (token: number) => void {
    const { evidence, generatedTokens: age, request } = sequence;
    const couldEnd = request.ignoreEos !== true && age >= Math.max(1, request.minTokens ?? 0);
    if (!couldEnd) return () => {};
    return (token) => this.#draws.push({ age, evidence, ended: sequence.stopsAt(token) });
  }

  /** @param milliseconds In the forward pass. */
  observation(milliseconds: number): StepObservation {
    const decodes = this.#decodes, prefillTokens = this.#prefillTokens;
    return { decodes, prefillTokens, milliseconds, draws: this.#draws };
  }
}
