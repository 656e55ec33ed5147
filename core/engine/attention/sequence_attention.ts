/**
 * One sequence's attention: how each of its tokens attends, and what they read. Prompts attend densely.
 * Each generated token gets its plan once, when it is drawn, and keeps it: computed again after a
 * preemption, it has to give the same KV.
 */
import type { AttentionControl, AttentionPolicy } from "../../entropic/pruning.ts";
import { type AttentionPlan, type AttentionStats, DENSE } from "../backend.ts";
import { addAttention, NO_TOTALS } from "./attention_totals.ts";
import type { AttentionReport, AttentionTotals, TokenEvent } from "../engine.ts";

/** Tokens from a position on that attend alike. */
interface Run {
  readonly start: number;
  readonly plan: AttentionPlan;
}

export class SequenceAttention {
  readonly control: AttentionControl;
  /** By position; what is before the first attends densely. */
  readonly #runs: Run[] = [];
  #prunedFrom = Infinity;
  #policy: AttentionPolicy;
  #totals: AttentionTotals = NO_TOTALS;
  #latest: TokenEvent["attention"];
  /** Distributions seen, and their mean entropy in nats. */
  #seen = 0;
  #meanEntropy = 0;

  constructor(control: AttentionControl) {
    this.control = control;
    this.#policy = control.policy;
  }

  /** Whether attention is pruned by choice. */
  get chosen(): boolean {
    return this.control.policy !== "off";
  }

  /** Position of the first token that attends by a pruned plan; infinite where none does. */
  get prunedFrom(): number {
    return this.#prunedFrom;
  }

  /** Nats, of the distributions seen so far. */
  get meanEntropy(): number {
    return this.#meanEntropy;
  }

  /** How the step that ran last attended; missing where attention is dense by choice. */
  get latest(): TokenEvent["attention"] {
    return this.#latest;
  }

  /** How the token at a position attends. */
  planAt(position: number): AttentionPlan {
    return this.#runs[this.#runAt(position)]?.plan ?? DENSE;
  }

  /** The next position whose token attends otherwise; infinite where there is none. */
  planEnd(position: number): number {
    return this.#runs[this.#runAt(position) + 1]?.start ?? Infinity;
  }

  /** Says how the token at `position` attends, and those after it until it is said again. */
  plan(position: number, plan: AttentionPlan, policy: AttentionPolicy): void {
    this.#policy = policy;
    if (isSame(plan, this.#runs.at(-1)?.plan ?? DENSE)) return;
    this.#runs.push({ start: position, plan });
    if (plan.kind !== "dense") this.#prunedFrom = Math.min(this.#prunedFrom, position);
  }

  observe(entropy: number): void {
    this.#meanEntropy += (entropy - this.#meanEntropy) / ++this.#seen;
  }

  /** Takes what a step read. @param first Whether it ran a generated token, for the first time. */
  charge(stats: AttentionStats, plan: AttentionPlan, first: boolean): void {
    if (!this.chosen) return;
    const share = stats.bytesTotal > 0 ? stats.bytesRead / stats.bytesTotal : 1;
    this.#latest = { plan, share };
    if (first) this.#totals = addAttention(this.#totals, stats, 1, plan.kind !== "dense");
  }

  report(): AttentionReport {
    return { policy: this.#policy, ...this.#totals };
  }

  /** Index of the run that holds a position; -1 before the first. Mostly it is the last. */
  #runAt(position: number): number {
    return this.#runs.findLastIndex(({ start }) => start <= position);
  }
}

function isSame(a: AttentionPlan, b: AttentionPlan): boolean {
  if (a.kind === "mass" && b.kind === "mass") {
    return a.mass === b.mass && a.minBlocks === b.minBlocks;
  }
  if (a.kind === "threshold" && b.kind === "threshold") {
    return a.threshold === b.threshold && a.minBlocks === b.minBlocks;
  }
  return a.kind === b.kind;
}
