/**
 * A backend that plays recorded generations on a virtual clock: each forward takes the time that a
 * model of the machine says, and answers what the recording saw. Under it runs the real engine.
 */
import {
  type Backend,
  type BackendInfo,
  type BackendLimits,
  type ForwardResult,
  type LogitStats,
  NO_ATTENTION,
  type SequenceInput,
  type Uncertainty,
} from "../../../core/engine/backend.ts";
import type { ModelConfig } from "../../../core/model/config.ts";
import type { VirtualClock } from "./drive.ts";
import type { Trace } from "./traces.ts";

/** Milliseconds of the parts of a step. */
export interface Machine {
  readonly step: number;
  readonly decode: number;
  readonly prefill: number;
  /** Of a KV block that moves to or from host memory. */
  readonly swap: number;
}

const END = 0, FILLER = 1, FIRST_PLAY = 2;
const BLOCK_BYTES = 8;

/** The prompt that makes the backend play number `index`. */
export function promptOf(index: number, { promptTokens }: Trace): Uint32Array {
  const prompt = new Uint32Array(promptTokens).fill(FILLER);
  prompt[0] = FIRST_PLAY + index;
  return prompt;
}

export class TraceBackend implements Backend {
  readonly config: ModelConfig;
  readonly limits: BackendLimits;
  readonly #plays: readonly Trace[];
  readonly #machine: Machine;
  readonly #clock: VirtualClock;
  /** Told after each forward, with the clock at its end. */
  readonly #onStep: () => void;
  /** The play that each block's content belongs to. */
  readonly #owner: Int32Array;

  constructor(
    plays: readonly Trace[],
    kvBlocks: number,
    machine: Machine,
    clock: VirtualClock,
    onStep: () => void,
  ) {
    this.#plays = plays;
    this.#machine = machine;
    this.#clock = clock;
    this.#onStep = onStep;
    this.#owner = new Int32Array(kvBlocks);
    this.limits = {
      kvBlocks,
      maxBatchTokens: 256,
      maxOutputRows: 64,
      contextLength: 8192,
      topK: 1,
    };
    this.config = configOf(FIRST_PLAY + plays.length);
  }

  describe(): BackendInfo {
    const kvBytes = this.limits.kvBlocks * BLOCK_BYTES;
    return { kind: "scripted", variant: "trace", threads: 1, weightBytes: 0, kvBytes };
  }

  forward(batch: readonly SequenceInput[]): Promise<ForwardResult> {
    const { step, decode, prefill } = this.#machine;
    this.#clock.now += step;
    for (const { tokens } of batch) {
      this.#clock.now += tokens.length === 1 ? decode : tokens.length * prefill;
    }
    const rows = batch.flatMap((input) => this.#row(input));
    this.#onStep();
    return Promise.resolve({ rows, attention: batch.map(() => NO_ATTENTION) });
  }

  #row({ tokens, position, blockTable, output }: SequenceInput): LogitStats[] {
    const first = position === 0
      ? tokens[0] as number
      : this.#owner[blockTable[0] as number] as number;
    this.#owner[blockTable[0] as number] = first;
    if (output === "none") return [];
    const trace = this.#plays[first - FIRST_PLAY] as Trace;
    return [drawOf(trace, position + tokens.length - trace.promptTokens)];
  }

  tempered(): Promise<Uncertainty> {
    return Promise.reject(new RangeError("Cannot temper logits: the recording has none"));
  }

  logits(): Promise<Float32Array> {
    return Promise.reject(new RangeError("Cannot give logits: the recording has none"));
  }

  logitsOf(): Promise<Float32Array> {
    return this.logits();
  }

  draw(): Promise<number> {
    return Promise.reject(new RangeError("Cannot draw a token: the recording has no logits"));
  }

  copyBlocks(pairs: readonly (readonly [from: number, to: number])[]): Promise<void> {
    for (const [from, to] of pairs) this.#owner[to] = this.#owner[from] as number;
    return Promise.resolve();
  }

  readBlocks(blocks: readonly number[]): Promise<Uint8Array> {
    this.#clock.now += blocks.length * this.#machine.swap;
    const content = Float64Array.from(blocks, (block) => this.#owner[block] as number);
    return Promise.resolve(new Uint8Array(content.buffer));
  }

  writeBlocks(blocks: readonly number[], content: Uint8Array): Promise<void> {
    this.#clock.now += blocks.length * this.#machine.swap;
    const owners = new Float64Array(content.slice().buffer);
    blocks.forEach((block, i) => this.#owner[block] = owners[i] as number);
    return Promise.resolve();
  }

  dispose(): Promise<void> {
    return Promise.resolve();
  }
}

/** The recording's distribution before token `index`; past its end, one that ends. */
function drawOf({ length, ended, entropy, endProbability }: Trace, index: number): LogitStats {
  const over = index >= length && ended;
  return {
    max: 0,
    logZ: 0,
    entropy: entropy[index] ?? 0,
    varentropy: 0,
    endProbability: endProbability[index] ?? 1,
    topIds: Uint32Array.of(over ? END : FILLER),
    topLogits: Float32Array.of(0),
  };
}

function configOf(vocabularySize: number): ModelConfig {
  return {
    architecture: "llama",
    name: "trace",
    layers: 1,
    hiddenSize: 8,
    feedForwardSize: 8,
    heads: 1,
    kvHeads: 1,
    headSize: 8,
    vocabularySize,
    contextLength: 8192,
    rmsEpsilon: 1e-5,
    rope: { base: 10000, dimensions: 8, scaling: { type: "none" } },
    tiedOutput: true,
    endTokens: [END],
  };
}
