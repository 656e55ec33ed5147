/**
 * A whole language model for tests of what lies above the engine: the byte tokenizer and an engine
 * that says what a script tells it.
 */
import { OverloadedError, RequestError } from "../../core/errors.ts";
import type {
  AttentionState,
  Engine,
  EngineInfo,
  EngineStats,
  FinishReason,
  SequenceEvent,
  SequenceRequest,
  SequenceStream,
} from "../../core/engine/engine.ts";
import type { LanguageModel } from "../../core/language_model.ts";
import { ByteTokenizer, chatml, END, VOCABULARY } from "./byte_tokenizer.ts";

const encoder = new TextEncoder();

/** What the engine does with a request. */
export interface Script {
  /** The tokens that it would draw; an end token, drawn or given as a stop token, ends them. */
  readonly tokens: readonly number[];
  /** Awaited before each token with the number of those before it; 0 is the prefill. */
  readonly before?: (position: number) => Promise<void> | void;
  /** Thrown instead of the end. */
  readonly failure?: Error;
}

export type Play = (request: SequenceRequest) => Script;

/** Bytes of the text, then the end of the turn. */
export function say(text: string): Script {
  return { tokens: [...encoder.encode(text), END] };
}

/** A text that depends on the seed alone. */
export const sayTheSeed: Play = ({ sampling }) => say(`seed ${sampling.seed}`);

export interface FakeOptions {
  readonly play?: Play;
  readonly contextLength?: number;
  /** Most sequences at a time; the next is refused as overload. */
  readonly capacity?: number;
}

export class FakeEngine implements Engine {
  readonly info: EngineInfo;
  /** Every request that was taken, in order. */
  readonly requests: SequenceRequest[] = [];
  /** Sequences that hold something. */
  live = 0;
  /** Tokens handed to readers. */
  produced = 0;
  #play: Play;
  #capacity: number;
  #promptTokens = 0;
  #finished: Record<FinishReason | "error", number> = { stop: 0, length: 0, abort: 0, error: 0 };

  constructor(options: FakeOptions = {}) {
    this.#play = options.play ?? (() => say("Hello, world"));
    this.#capacity = options.capacity ?? Infinity;
    this.info = fakeInfo(options.contextLength ?? 512);
  }

  submit(request: SequenceRequest): Promise<SequenceStream> {
    const context = this.info.maxSequenceTokens;
    const asked = request.prompt.length + request.maxTokens;
    if (request.prompt.length === 0 || asked > context) {
      const code = "context_length_exceeded";
      return Promise.reject(new RequestError(`Cannot fit ${asked} in ${context}`, { code }));
    }
    if (this.live >= this.#capacity) {
      return Promise.reject(new OverloadedError("Cannot queue the request: the queue is full", 3));
    }
    this.requests.push(request);
    this.live++;
    this.#promptTokens += request.prompt.length;
    return Promise.resolve(this.#stream(this.requests.length - 1, request));
  }

  #stream(id: number, request: SequenceRequest): SequenceStream {
    const aborted = new AbortController();
    const events = this.#events(request, aborted.signal);
    let released = false;
    const release = () => {
      if (!released) this.live--;
      released = true;
    };
    return {
      id,
      abort() {
        aborted.abort();
        release();
      },
      async *[Symbol.asyncIterator]() {
        try {
          yield* events;
        } finally {
          release();
        }
      },
    };
  }

  async *#events(request: SequenceRequest, aborted: AbortSignal): AsyncGenerator<SequenceEvent> {
    const script = this.#play(request);
    const leave = new Promise<void>((resolve) => {
      if (aborted.aborted) resolve();
      aborted.addEventListener("abort", () => resolve(), { once: true });
    });
    const ends = new Set([...request.stopTokens ?? [], ...request.ignoreEos ? [] : [END]]);
    if (request.promptLogprobs) yield promptEvent(request);
    let completion = 0;
    let reason: FinishReason = "length";
    let stopToken: number | undefined;
    for (const token of script.tokens) {
      if (completion >= request.maxTokens) break;
      await Promise.race([script.before?.(completion), leave]);
      if (aborted.aborted) break;
      if (ends.has(token)) {
        reason = "stop";
        stopToken = token;
        break;
      }
      completion++;
      this.produced++;
      yield tokenEvent(token, request.topLogprobs ?? 0);
    }
    if (aborted.aborted) reason = "abort";
    else if (script.failure !== undefined) {
      this.#finished.error++;
      throw script.failure;
    }
    this.#finished[reason]++;
    yield {
      type: "end",
      reason,
      ...(stopToken !== undefined && { stopToken }),
      usage: {
        promptTokens: request.prompt.length,
        cachedTokens: Math.min(4, request.prompt.length - 1),
        completionTokens: completion,
      },
      timings: { queued: 1, prefill: 10, decode: 20 },
      tau: completion * 0.5,
      cost: fakeCost(completion),
    };
  }

  stats(): Promise<EngineStats> {
    return Promise.resolve({
      waiting: 0,
      running: this.live,
      preempted: 0,
      kvBlocksFree: 100 - this.live,
      kvBlocksCached: 10,
      kvBlocksTotal: 100,
      steps: this.produced,
      promptTokens: this.#promptTokens,
      cachedTokens: 4 * this.requests.length,
      generatedTokens: this.produced,
      preemptions: 2,
      finished: this.#finished,
      tau: this.produced * 0.5,
      cost: fakeCost(this.produced),
      attention: fakeAttention(this.produced),
      rebuilds: 1,
      forwardSeconds: 1.5,
      overheadSeconds: 0.25,
    });
  }

  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

function fakeCost(tokens: number) {
  return { flops: 2e9 * tokens, weightBytes: 5e8 * tokens, kvBytes: 5e8 * tokens, seconds: tokens };
}

function fakeAttention(steps: number): AttentionState {
  return {
    policy: "mass",
    totals: {
      prunedSteps: steps,
      steps: 2 * steps,
      blocksRead: 30 * steps,
      blocksTotal: 100 * steps,
      bytesRead: 4000 * steps,
      bytesTotal: 10_000 * steps,
      macs: 500 * steps,
      macsTotal: 1000 * steps,
      massDropped: 0.05,
    },
    bound: 0.02,
    shadows: 3,
    divergence: 0.005,
    shadowSeconds: 0.5,
    lengths: [
      { length: 1024, mass: 0.9, threshold: 0.001, divergence: { mass: 0.005, paper: 0 } },
    ],
  };
}

function tokenEvent(token: number, top: number) {
  const alternatives = Array.from({ length: top }, (_, rank) => ({
    token: (token + rank) % VOCABULARY,
    logprob: -0.25 - rank,
  }));
  return {
    type: "token" as const,
    token,
    logprob: -0.25,
    entropy: 0.75,
    varentropy: 0.1,
    endProbability: 0.01,
    temperature: 1,
    top: alternatives,
  };
}

function promptEvent(request: SequenceRequest) {
  const logprobs = Array.from(request.prompt).slice(1).map((token) => {
    const { logprob, top } = tokenEvent(token, request.topLogprobs ?? 0);
    return { token, logprob, top };
  });
  return { type: "prompt" as const, logprobs };
}

function fakeInfo(contextLength: number): EngineInfo {
  return {
    config: {
      architecture: "llama",
      name: "fake",
      layers: 1,
      hiddenSize: 16,
      feedForwardSize: 16,
      heads: 1,
      kvHeads: 1,
      headSize: 16,
      vocabularySize: VOCABULARY,
      contextLength,
      rmsEpsilon: 1e-5,
      rope: { base: 10000, dimensions: 16, scaling: { type: "none" } },
      tiedOutput: true,
      endTokens: [END],
    },
    backend: { kind: "scripted", variant: "fake", threads: 1, weightBytes: 1000, kvBytes: 2000 },
    limits: {
      kvBlocks: 100,
      maxBatchTokens: 64,
      maxOutputRows: 64,
      contextLength,
      topK: 64,
    },
    policy: "fcfs",
    attention: {
      policy: "mass",
      allowed: ["off", "mass", "paper"],
      floor: { mass: 0.5, minBlocks: 4 },
      denseBelow: 1024,
    },
    entropyFloor: 0,
    maxSequenceTokens: contextLength,
  };
}

export type FakeModel = LanguageModel & { readonly engine: FakeEngine };

/** A model named `fake` that says what `play` tells it. */
export function fakeModel(options: FakeOptions = {}): FakeModel {
  return {
    id: "fake",
    created: 1_700_000_000,
    engine: new FakeEngine(options),
    tokenizer: new ByteTokenizer(),
    template: chatml,
  };
}
