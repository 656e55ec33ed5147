/**
 * Decides how each generated token attends, by what the sequence asks and what the safeguards hold. A
 * request that fixes its own mass or threshold is left alone, so that it gives the same tokens again.
 */
import {
  attentionBudget,
  type AttentionControl,
  type AttentionPolicy,
} from "../../entropic/pruning.ts";
import {
  hasFailed,
  heldAt,
  measurementsOf,
  observeDivergence,
  type PrunedPolicy,
  type Safeguards,
  settingsOf,
  startSafeguards,
} from "../../entropic/safeguards.ts";
import { attentionInfo, type AttentionRules } from "./attention_settings.ts";
import { type BackendInfo, DENSE } from "../backend.ts";
import type { AttentionInfo, AttentionState, SequenceRequest } from "../engine.ts";
import type { Sequence } from "../sequence.ts";
import { blocksFor } from "../kv/sequence_blocks.ts";
import type { Measurement } from "./shadow_steps.ts";

export class AttentionGuard {
  readonly #rules: AttentionRules;
  readonly #log: (line: string) => void;
  #state: Safeguards;
  #info: AttentionInfo;
  /** Why policies were given up. */
  readonly #failures: string[] = [];

  /** @param log Told when a policy fails its bound. */
  constructor(rules: AttentionRules, backend: BackendInfo, log: (line: string) => void) {
    this.#rules = rules;
    this.#log = log;
    const { masses, threshold, divergence, floor } = rules;
    this.#state = startSafeguards(masses, threshold, divergence, floor.mass);
    this.#info = attentionInfo(rules, backend);
  }

  /** There is a new backend. */
  attach(backend: BackendInfo): void {
    this.#info = attentionInfo(this.#rules, backend);
  }

  /** How a request's sequence is to attend, the engine's defaults filled in. */
  controlOf({ attention }: SequenceRequest): AttentionControl {
    const { control } = this.#rules;
    return { ...control, policy: this.#info.policy, ...attention };
  }

  /** Plans for the sequence's latest token, drawn from the distribution that it saw last. */
  plan({ attention, clock, length }: Sequence, vocabularySize: number): void {
    const { control, meanEntropy } = attention;
    const { policy } = control;
    if (policy === "off") return;
    if (!this.#info.allowed.includes(policy) || (isSteered(control) && this.#isOff(policy))) {
      return attention.plan(length - 1, DENSE, "off");
    }
    const { entropy = meanEntropy } = clock;
    const maxEntropy = Math.log(vocabularySize);
    const at = { context: length, blocks: blocksFor(length), entropy, meanEntropy, maxEntropy };
    const budget = attentionBudget(control, at, heldAt(this.#state, length), this.#rules);
    attention.plan(length - 1, budget, policy);
  }

  /** Learns from a measurement of a sequence's latest token. */
  observe({ sequence: { attention, length }, nats }: Measurement): void {
    const { control } = attention;
    const { policy } = control;
    if (policy === "off" || Number.isNaN(nats)) return;
    const wasOff = this.#isOff(policy);
    this.#state = observeDivergence(this.#state, policy, length, nats, isSteered(control));
    if (!wasOff && this.#isOff(policy)) this.#giveUp(policy, length);
  }

  /** How things stand. */
  get state(): Omit<AttentionState, "totals" | "shadowSeconds"> {
    const { policy } = this.#info;
    const reasons = [this.#info.reason ?? [], this.#failures].flat();
    const { count, nats } = measurementsOf(this.#state);
    return {
      policy: this.#isOff(policy) ? "off" : policy,
      ...(reasons.length > 0 && { reason: reasons.join("; ") }),
      bound: this.#state.bound,
      shadows: count,
      divergence: count > 0 ? nats / count : 0,
      lengths: settingsOf(this.#state),
    };
  }

  #isOff(policy: AttentionPolicy): boolean {
    return policy !== "off" && hasFailed(this.#state, policy);
  }

  #giveUp(policy: PrunedPolicy, length: number): void {
    const reason =
      `${policy} diverged from dense attention by more than ${this.#state.bound} nats ` +
      `in the mean with its most careful setting, at about ${length} tokens`;
    this.#failures.push(reason);
    this.#log(`Attention is dense from now on unless a request fixes how much to drop: ${reason}`);
  }
}

/** Whether the engine holds what the request has not fixed. */
function isSteered({ policy, mass, threshold }: AttentionControl): boolean {
  return policy === "mass" ? mass === undefined : threshold === undefined;
}
