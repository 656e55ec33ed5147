/**
 * One request on its way through the engine: its tokens, the KV blocks that hold them, and what has
 * been observed and drawn so far. Scheduler and pool change the block fields, the engine the others.
 */
import { advance, CLOCK_START, type EntropicClock } from "../entropic/clock.ts";
import { addCost, type Cost, NO_COST } from "../entropic/cost.ts";
import { type EndEvidence, NO_EVIDENCE, observeEnd } from "../entropic/hazard.ts";
import type { AttentionControl } from "../entropic/pruning.ts";
import { BLOCK_SIZE, type LogitStats } from "./backend.ts";
import type { PrefixId } from "./kv/block_pool.ts";
import type { EndEvent, FinishReason, PromptEvent, SequenceRequest } from "./engine.ts";
import type { EventQueue } from "./event_queue.ts";
import { LogitAdjuster } from "./sampling/logit_adjuster.ts";
import type { SequenceFacts } from "./scheduling/policy.ts";
import { SequenceAttention } from "./attention/sequence_attention.ts";
import { TemperatureLoop } from "./sampling/temperature_loop.ts";
import type { Waiter } from "./scheduling/waiting_queue.ts";

/** KV of the first `positions` of a swapped-out sequence, in host memory. */
export interface HostCopy {
  readonly positions: number;
  /** Bytes booked for it. */
  readonly bytes: number;
  /** Missing until the blocks have been read. */
  content?: Uint8Array;
}

/** When a sequence reached each phase, in milliseconds on the engine's clock. */
export interface Milestones {
  readonly arrival: number;
  started?: number;
  firstToken?: number;
}

export class Sequence implements SequenceFacts, Waiter {
  readonly id: number;
  readonly request: SequenceRequest;
  readonly events: EventQueue;
  readonly adjuster: LogitAdjuster;
  readonly promptTokens: number;
  readonly attention: SequenceAttention;
  readonly milestones: Milestones;
  /** Missing where the request's temperature is what it draws with. */
  readonly temperature: TemperatureLoop | undefined;

  // Owned by the scheduler, down to `cachedTokens`.
  key = 0;
  heapIndex = -1;
  /** `waiting` is everything without KV blocks, whether new or preempted. */
  phase: "waiting" | "resident" | "finished" = "waiting";
  /** Physical block of each 16 positions. */
  blocks: number[] = [];
  /** Positions whose KV the blocks hold. */
  computed = 0;
  /** Leading blocks that are in the prefix index, and the chain that they make. */
  committed = 0;
  root: PrefixId = 0;
  prefix: PrefixId = 0;
  host: HostCopy | undefined;
  /** Waiting sequences whose next block this one computes, and the one that this one waits for. */
  readonly followers = new Set<Sequence>();
  leader: Sequence | undefined;
  /** Prompt tokens found in the prefix cache when it first ran. */
  cachedTokens = 0;

  /** Asked to end; done at the next step boundary. */
  aborted = false;
  clock: EntropicClock;
  evidence: EndEvidence = NO_EVIDENCE;
  cost: Cost = NO_COST;
  readonly promptLogprobs: PromptEvent["logprobs"][number][] = [];

  #tokens: Uint32Array;
  #length: number;
  readonly #stops: ReadonlySet<number>;

  constructor(
    id: number,
    request: SequenceRequest,
    context: {
      readonly events: EventQueue;
      /** Milliseconds on the engine's clock. */
      readonly arrival: number;
      readonly endTokens: readonly number[];
      /** The request's, with the engine's defaults filled in; dense where left out. */
      readonly attention?: AttentionControl;
      /** What lies below it removes no entropy, in nats; 0 where left out. */
      readonly entropyFloor?: number;
    },
  ) {
    this.id = id;
    this.request = request;
    this.events = context.events;
    this.milestones = { arrival: context.arrival };
    this.promptTokens = this.#length = request.prompt.length;
    this.#tokens = new Uint32Array(this.#length + Math.min(request.maxTokens, 64));
    this.#tokens.set(request.prompt);
    this.#stops = new Set([
      ...(request.ignoreEos === true ? [] : context.endTokens),
      ...(request.stopTokens ?? []),
    ]);
    this.adjuster = new LogitAdjuster(request, this.#stops);
    this.temperature = TemperatureLoop.of(request.sampling);
    this.attention = new SequenceAttention(context.attention ?? { policy: "off" });
    this.clock = { ...CLOCK_START, floor: context.entropyFloor ?? 0 };
  }

  get arrival(): number {
    return this.milestones.arrival;
  }

  get priority(): number {
    return this.request.priority ?? 0;
  }

  get maxTokens(): number {
    return this.request.maxTokens;
  }

  /** Milliseconds from arrival to the last token that the caller hopes for. */
  get latencyTarget(): number | undefined {
    return this.request.latencyTarget;
  }

  get resident(): boolean {
    return this.phase === "resident";
  }

  /** Prompt and generated tokens. */
  get length(): number {
    return this.#length;
  }

  get generatedTokens(): number {
    return this.#length - this.promptTokens;
  }

  get uncomputedTokens(): number {
    return this.#length - this.computed;
  }

  /** More than the latest token has to be computed: a new prompt, or one being computed again. */
  get prefilling(): boolean {
    return this.uncomputedTokens > 1;
  }

  /** Prompt and generated tokens, shape [length]; a view that the next `append` may outdate. */
  get tokens(): Uint32Array {
    return this.#tokens.subarray(0, this.#length);
  }

  /** Views `count` tokens from `start` on. */
  slice(start: number, count: number): Uint32Array {
    return this.#tokens.subarray(start, start + count);
  }

  /** Rows of logits that `promptLogprobs` still needs. */
  get promptRowsLeft(): number {
    return this.request.promptLogprobs === true
      ? this.promptTokens - 1 - this.promptLogprobs.length
      : 0;
  }

  /**
   * Most leading blocks that may come from the prefix cache. The last token is always computed, so
   * that a hit gives what a miss does; so is every position whose row `promptLogprobs` still needs.
   */
  get reusableBlocks(): number {
    const positions = this.promptRowsLeft > 0 ? this.promptLogprobs.length : this.#length - 1;
    return Math.min(Math.floor(positions / BLOCK_SIZE), this.shareableBlocks);
  }

  /** Leading blocks that the prefix cache may hold: those before the first pruned token. */
  get shareableBlocks(): number {
    return Math.floor(this.attention.prunedFrom / BLOCK_SIZE);
  }

  append(token: number): void {
    if (this.#length === this.#tokens.length) {
      const grown = new Uint32Array(2 * this.#length);
      grown.set(this.#tokens);
      this.#tokens = grown;
    }
    this.#tokens[this.#length++] = token;
    this.adjuster.observe(token);
  }

  /** Takes note of the distribution that the next token is drawn from. */
  observe(stats: LogitStats): void {
    this.clock = advance(this.clock, stats.entropy);
    this.evidence = observeEnd(this.evidence, stats);
    this.attention.observe(stats.entropy);
  }

  /** Takes its share of a step. */
  charge(share: Cost): void {
    this.cost = addCost(this.cost, share);
  }

  /** Whether drawing this token ends the sequence. */
  stopsAt(token: number): boolean {
    return this.#stops.has(token);
  }

  /** The event that closes its stream. */
  endEvent(reason: FinishReason, now: number, stopToken?: number): EndEvent {
    const { arrival, started = now, firstToken = now } = this.milestones;
    return {
      type: "end",
      reason,
      ...(stopToken === undefined ? {} : { stopToken }),
      usage: {
        promptTokens: this.promptTokens,
        cachedTokens: this.cachedTokens,
        completionTokens: this.generatedTokens,
      },
      timings: {
        queued: started - arrival,
        prefill: firstToken - started,
        decode: now - firstToken,
      },
      tau: this.clock.tau,
      cost: this.cost,
      ...(this.temperature && { temperature: this.temperature.report() }),
      ...(this.attention.chosen && { attention: this.attention.report() }),
    };
  }
}
