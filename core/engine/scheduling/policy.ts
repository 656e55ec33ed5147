/**
 * Policies: who runs first. A policy is data and a pure function from facts to an order key; the
 * scheduler does the rest, and victims go by the same key. Every policy plugs in here.
 */
import type { EntropicClock } from "../../entropic/clock.ts";
import type { EndEvidence } from "../../entropic/hazard.ts";
import type { Workload } from "../../entropic/workload.ts";

/** What a policy may know of a sequence. */
export interface SequenceFacts {
  /** Grows with each submit. */
  readonly id: number;
  /** Milliseconds on the engine's clock. */
  readonly arrival: number;
  /** As the request gave it; higher is more urgent. */
  readonly priority: number;
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly generatedTokens: number;
  /** Tokens whose KV has to be computed before the next one can be drawn, >= 1. */
  readonly uncomputedTokens: number;
  /** Whether it holds KV blocks. */
  readonly resident: boolean;
  /** KV of its first positions in host memory, since it lost its blocks. */
  readonly host?: { readonly positions: number } | undefined;
  /** Milliseconds from arrival to the last token that its caller hopes for. */
  readonly latencyTarget?: number | undefined;
  /** Its entropic time, latest entropy, and how fast that falls. */
  readonly clock: EntropicClock;
  /** What its distributions say about ending. */
  readonly evidence: EndEvidence;
}

export interface Policy {
  readonly name: string;
  /**
   * The order key of a sequence: lower runs first, ties by `id`. Pure. `now` is in milliseconds; a
   * key that ages all sequences alike should leave it out and count from `arrival`.
   *
   * @param workload What the engine has learnt so far.
   */
  key(facts: SequenceFacts, now: number, workload: Workload): number;
  /**
   * In how many steps the keys of all waiting sequences are worked out anew, some in each step; 0
   * where they do not change while a sequence waits. Those of resident sequences are in every step.
   */
  readonly refreshSteps: number;
}

/** First come, first served. A preempted sequence keeps its place. */
export const fcfs: Policy = { name: "fcfs", key: (facts) => facts.id, refreshSteps: 0 };

/** Whether `a` runs before `b`. */
export function runsBefore(
  a: { readonly key: number; readonly id: number },
  b: { readonly key: number; readonly id: number },
): boolean {
  return a.key < b.key || (a.key === b.key && a.id < b.id);
}
