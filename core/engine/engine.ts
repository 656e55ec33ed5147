/**
 * The Engine contract: token ids in, token ids out. It knows nothing of text. `LocalEngine` runs in
 * this thread; `RemoteEngine` speaks to one in a Worker.
 */
import type { Cost } from "../entropic/cost.ts";
import type { AttentionControl, AttentionFloor, AttentionPolicy } from "../entropic/pruning.ts";
import type { TemperatureControl, TemperatureLaw } from "../entropic/temperature.ts";
import type { ModelConfig } from "../model/config.ts";
import type { AttentionPlan, AttentionStats, BackendInfo, BackendLimits } from "./backend.ts";

/** How the next token is chosen. Every field has its neutral value when left out. */
export interface SamplingParams {
  /** 0 is greedy; 1 is the model's own distribution. Any finite value >= 0. */
  readonly temperature?: number;
  /**
   * Steers the temperature by entropy, from `temperature` on, which must not be 0 then. Left out, the
   * temperature stays what it is. H is taken after biases and penalties, before top_k and its like.
   */
  readonly temperatureControl?: Partial<TemperatureControl> & { readonly law: TemperatureLaw };
  /** Keep the k most likely tokens; 0 keeps all. */
  readonly topK?: number;
  /** Keep the smallest set with this mass (arXiv 1904.09751), in (0, 1]. */
  readonly topP?: number;
  /** Drop tokens less likely than this share of the most likely (arXiv 2407.01082), in [0, 1]. */
  readonly minP?: number;
  /** Divides positive and multiplies negative logits of tokens seen (arXiv 1909.05858), > 0. */
  readonly repetitionPenalty?: number;
  /** Subtracted once from tokens already generated, in [-2, 2]. */
  readonly presencePenalty?: number;
  /** Subtracted for each time that a token was generated, in [-2, 2]. */
  readonly frequencyPenalty?: number;
  /** Added to the logits of these ids. */
  readonly logitBias?: readonly (readonly [id: number, bias: number])[];
  /** Unsigned 64-bit; the same seed gives the same tokens. */
  readonly seed: bigint;
}

/** What the engine is asked to do. */
export interface SequenceRequest {
  readonly prompt: ArrayLike<number>;
  readonly sampling: SamplingParams;
  /** Most tokens to generate, >= 0. With 0 the prompt is processed and nothing is emitted. */
  readonly maxTokens: number;
  /** End tokens are not sampled before this many tokens; 0 where left out. */
  readonly minTokens?: number;
  /** Ids that end the generation besides the model's own end tokens. */
  readonly stopTokens?: readonly number[];
  /** Go on past the model's end tokens. */
  readonly ignoreEos?: boolean;
  /** Higher runs earlier under policies that look at it; 0 where left out. */
  readonly priority?: number;
  /** How generated tokens attend to what was before; the engine's default where left out. */
  readonly attention?: AttentionControl;
  /** Milliseconds from arrival to the last token that the caller hopes for. */
  readonly latencyTarget?: number;
  /** How many of the most likely tokens each event lists; 0 where left out. */
  readonly topLogprobs?: number;
  /**
   * Also report the log-probability of each prompt token given those before it, as the `prompt`
   * event. Costs an output row for every prompt token, and leaves the prefix cache unread.
   */
  readonly promptLogprobs?: boolean;
}

export interface TokenLogprob {
  readonly token: number;
  /** Natural log of the probability under the raw model, at temperature 1. */
  readonly logprob: number;
}

/** One generated token. End tokens are reported by the `end` event only. */
export interface TokenEvent extends TokenLogprob {
  readonly type: "token";
  /** Nats; of the raw distribution that the token was drawn from. */
  readonly entropy: number;
  readonly varentropy: number;
  /** Probability that the raw distribution gave to the model's end tokens. */
  readonly endProbability: number;
  /** That the token was drawn with; 0 is greedy. */
  readonly temperature: number;
  /** The most likely tokens, best first; empty unless asked for. */
  readonly top: readonly TokenLogprob[];
  /** How the step that it was drawn in attended; missing where attention was dense by choice. */
  readonly attention?: {
    readonly plan: AttentionPlan;
    /** Bytes read, as a share of what dense attention would have read. */
    readonly share: number;
  };
}

/** Log-probabilities of the prompt's own tokens; precedes the first token. */
export interface PromptEvent {
  readonly type: "prompt";
  /** One entry a prompt token but the first, which has none. */
  readonly logprobs: readonly (TokenLogprob & { readonly top: readonly TokenLogprob[] })[];
}

export type FinishReason = "stop" | "length" | "abort";

export interface Usage {
  readonly promptTokens: number;
  /** Prompt tokens found in the prefix cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

/** Milliseconds. */
export interface Timings {
  readonly queued: number;
  readonly prefill: number;
  readonly decode: number;
}

/** How a sequence's temperature control went; means are over the steps drawn. */
export interface TemperatureReport {
  readonly law: TemperatureLaw;
  /** Steps drawn, the end token's included. */
  readonly steps: number;
  /** Share of steps at T_min or T_max. */
  readonly railShare: number;
  readonly meanTemperature: number;
  /** Of H at the temperature drawn with, in nats: mean and standard deviation. */
  readonly meanEntropy: number;
  readonly entropyDeviation: number;
  readonly meanVarentropy: number;
  /** Mean of eta_t V, by which the law's slope differs from 1. */
  readonly meanGain: number;
}

/** What attention read over some steps. A token that attends is a step of its own. */
export interface AttentionTotals extends AttentionStats {
  /** Steps that were pruned, and steps in all. */
  readonly prunedSteps: number;
  readonly steps: number;
  /** Mean share of the attention left out in pruned steps, by the scan's estimate. */
  readonly massDropped: number;
}

/**
 * What a sequence's attention read over its generated tokens. Those that ran together with others, after
 * a preemption, are left out.
 */
export interface AttentionReport extends AttentionTotals {
  /** In force at the end: `off` where the engine had turned the policy off. */
  readonly policy: AttentionPolicy;
}

/** The last event of every stream that did not fail. */
export interface EndEvent {
  readonly type: "end";
  readonly reason: FinishReason;
  /** The stop or end token that was drawn, where that is why it ended. */
  readonly stopToken?: number;
  readonly usage: Usage;
  readonly timings: Timings;
  /** Entropic time of the sequence: nats of entropy removed (arXiv 2603.03310). */
  readonly tau: number;
  /** Its share of the steps that it was part of. */
  readonly cost: Cost;
  /** Missing where its temperature was not controlled. */
  readonly temperature?: TemperatureReport;
  /** Missing where attention was dense by choice. */
  readonly attention?: AttentionReport;
}

export type SequenceEvent = PromptEvent | TokenEvent | EndEvent;

/**
 * The events of one sequence. Iterating ends after the `end` event, or throws the sequence's error.
 * Leaving the loop early aborts. A reader that stops reading pauses this sequence and no other.
 */
export interface SequenceStream extends AsyncIterable<SequenceEvent> {
  readonly id: number;
  /** Frees everything the sequence holds within one step; an `end` event with `abort` follows. */
  abort(): void;
}

export interface EngineInfo {
  readonly config: ModelConfig;
  readonly backend: BackendInfo;
  readonly limits: BackendLimits;
  readonly policy: string;
  readonly attention: AttentionInfo;
  /** What lies below it removes no entropy, in nats. */
  readonly entropyFloor: number;
  /** Longest prompt plus completion that a request may ask for, in tokens. */
  readonly maxSequenceTokens: number;
}

/** How the engine attends, and what requests may ask. */
export interface AttentionInfo {
  /** Policy of requests that name none. */
  readonly policy: AttentionPolicy;
  /** Why it is not the one that the engine was told to use. */
  readonly reason?: string;
  /** Policies that a request may name. */
  readonly allowed: readonly AttentionPolicy[];
  /** What no request and no controller goes below. */
  readonly floor: AttentionFloor;
  /** Contexts of fewer tokens stay dense. */
  readonly denseBelow: number;
}

/** How the engine's safeguards of pruned attention stand. */
export interface AttentionState {
  /** Of requests that name no policy; `off` once it has failed its bound. */
  readonly policy: AttentionPolicy;
  /** Why a policy is not in force, where one that could be asked for is not. */
  readonly reason?: string;
  /** Over all steps, prompts included. */
  readonly totals: AttentionTotals;
  /** Nats of KL from dense attention that are allowed in the mean. */
  readonly bound: number;
  /** Dense steps run beside pruned ones, the mean divergence they found, and what they took. */
  readonly shadows: number;
  readonly divergence: number;
  readonly shadowSeconds: number;
  /** What is held at contexts from so many tokens on, and the mean divergence there, by policy. */
  readonly lengths: readonly {
    readonly length: number;
    readonly mass: number;
    readonly threshold: number;
    readonly divergence: Readonly<Record<"mass" | "paper", number>>;
  }[];
}

/** A snapshot for `/metrics` and `/health`. Counters grow from the engine's start. */
export interface EngineStats {
  readonly waiting: number;
  readonly running: number;
  /** Sequences whose KV lies in host memory or waits for recomputing. */
  readonly preempted: number;
  readonly kvBlocksFree: number;
  /** Free blocks that still hold a reusable prefix; part of `kvBlocksFree`. */
  readonly kvBlocksCached: number;
  readonly kvBlocksTotal: number;
  readonly steps: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  readonly preemptions: number;
  readonly finished: Readonly<Record<FinishReason | "error", number>>;
  /** Nats, over all sequences. */
  readonly tau: number;
  /** Of all steps. */
  readonly cost: Cost;
  readonly attention: AttentionState;
  /** Times that a backend was lost and another took its place. */
  readonly rebuilds: number;
  /** Seconds spent inside `Backend.forward`. */
  readonly forwardSeconds: number;
  /** Seconds spent in steps outside `Backend.forward`. */
  readonly overheadSeconds: number;
}

export interface Engine {
  readonly info: EngineInfo;
  /**
   * Queues a sequence; resolves once it has its place.
   *
   * @throws {RequestError} The request can never be served: empty prompt, ids outside the
   * vocabulary, more tokens than the context or the whole KV cache holds.
   * @throws {OverloadedError} The queue is full.
   */
  submit(request: SequenceRequest): Promise<SequenceStream>;
  /** @throws {BackendError} The engine is down: nothing can be submitted any more. */
  stats(): Promise<EngineStats>;
  /** Ends every sequence and frees the backend. A second call does nothing. */
  dispose(): Promise<void>;
}
