/**
 * The WASM backend: a Rust core that runs Llama-architecture models with SIMD over a paged KV cache.
 * Calls compute synchronously in this thread; a host that must stay responsive runs it in a Worker.
 */
import { BLOCK_SIZE } from "../core/engine/backend.ts";
import type {
  Backend,
  BackendInfo,
  BackendLimits,
  ForwardResult,
  KeyMoments,
  KeySketch,
  Pruning,
  SequenceInput,
} from "../core/engine/backend.ts";
import { BackendError } from "../core/errors.ts";
import type { ModelConfig } from "../core/model/config.ts";
import type { ModelFiles } from "../core/model/tensors.ts";
import { attentionStats, type BlockCost } from "./attention.ts";
import { Kernel, type KvType } from "./kernel.ts";
import {
  chooseVariant,
  compile,
  instantiate,
  sharedMemory,
  startThread,
  type Variant,
} from "./loader.ts";
import { checkSketch, momentsOf, packSketch } from "./pruning.ts";
import { startThreads, type Threads } from "./threads.ts";
import { outputRows, validateBatch, validateBlock } from "./validate.ts";
import { loadWeights } from "./weights.ts";

export interface WasmBackendOptions {
  readonly files: ModelFiles;
  /** Most positions a sequence may have; the model's own context length where left out. */
  readonly contextLength?: number;
  /** KV blocks of 16 tokens; where left out, four full contexts or 128 MiB, at least one context. */
  readonly kvBlocks?: number;
  /** `q8`, or `f32` as the exact reference of tests and evaluations. */
  readonly kvType?: KvType;
  /** Most new tokens a step; 256 where left out. */
  readonly maxBatchTokens?: number;
  /** Most output rows a step, whose logits stay readable; 64 where left out. */
  readonly maxOutputRows?: number;
  /** Most likely tokens that statistics list; 64 where left out. */
  readonly topK?: number;
  /**
   * Most threads to use, this one included; 1 where left out. `describe` tells how many there are.
   * This thread must be allowed to wait, so in browsers it has to be a Worker.
   */
  readonly threads?: number;
  readonly variant?: Variant | "auto";
  /** Folder of the artifacts, for bundles that moved them; ends with a slash. */
  readonly artifacts?: URL;
  readonly onProgress?: (loaded: number, total: number) => void;
}

/** Bytes that the default number of KV blocks may take. */
const DEFAULT_KV_BYTES = 128 * 2 ** 20;

/**
 * Loads a model into a WASM instance of its own.
 *
 * @throws {RangeError} An option is out of range, or the engine cannot run the variant.
 * @throws {ModelError} The model's file cannot be read, or its weights do not fit.
 * @throws {BackendError} The KV cache does not fit the memory.
 */
export async function createWasmBackend(options: WasmBackendOptions): Promise<Backend> {
  const { files, kvType = "q8" } = options;
  checkShape(files.config);
  const variant = chooseVariant(options.variant ?? "auto", options.threads ?? 1);
  const threads = variant === "threads" ? options.threads ?? 1 : 1;
  const folder = options.artifacts ?? new URL("./lib/", import.meta.url);
  const module = await compile(variant, folder);
  const memory = variant === "threads" ? sharedMemory() : undefined;
  const exports = await instantiate(module, memory);
  if (memory !== undefined) startThread(exports);
  const kernel = new Kernel(exports, files.config);
  const blockBytes = kernel.kvBlockBytes(kvType);
  const limits = limitsOf(options, blockBytes);
  await loadWeights(kernel, files, options.onProgress);
  if (!kernel.finish({ ...limits, kvType, threads })) {
    const message = `Cannot reserve ${limits.kvBlocks} KV blocks: out of WASM memory (4 GiB)`;
    throw new BackendError(message, { fatal: true });
  }
  const backend = new WasmBackend(files.config, limits, variant, threads, kernel, blockBytes);
  if (memory !== undefined && threads > 1) await backend.startThreads(module, memory);
  return backend;
}

/** @throws {RangeError} The kernels' vectors do not fit the model. */
function checkShape({ hiddenSize, feedForwardSize, headSize, heads, rope }: ModelConfig): void {
  const check = (name: string, value: number, unit: number, most = Infinity) => {
    if (value % unit === 0 && value <= most) return;
    const allowed = `multiples of ${unit}${most < Infinity ? ` up to ${most}` : ""}`;
    throw new RangeError(`Cannot run model: ${name} is ${value}, allowed are ${allowed}`);
  };
  check("hidden size", hiddenSize, 32);
  check("feed-forward size", feedForwardSize, 32);
  check("head size", headSize, 16, 256);
  check("heads times head size", heads * headSize, 32);
  check("rope dimensions", rope.dimensions, 2, headSize);
}

function limitsOf(options: WasmBackendOptions, blockBytes: number): BackendLimits {
  const { config } = options.files;
  const contextLength = options.contextLength ?? config.contextLength;
  const contextBlocks = Math.ceil(contextLength / BLOCK_SIZE);
  const affordable = Math.floor(DEFAULT_KV_BYTES / blockBytes);
  const limits = {
    contextLength,
    kvBlocks: options.kvBlocks ?? Math.max(contextBlocks, Math.min(4 * contextBlocks, affordable)),
    maxBatchTokens: options.maxBatchTokens ?? 256,
    maxOutputRows: options.maxOutputRows ?? 64,
    topK: Math.min(options.topK ?? 64, config.vocabularySize),
  };
  for (const [name, value] of Object.entries({ ...limits, threads: options.threads ?? 1 })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RangeError(`Cannot create backend: ${name} is ${value}, allowed is 1 or more`);
    }
  }
  return limits;
}

class WasmBackend implements Backend {
  readonly config: ModelConfig;
  readonly limits: BackendLimits;
  readonly pruning: Pruning = {
    gather: (on, stretch) => this.#gather(on, stretch),
    useSketch: (sketch) => this.#useSketch(sketch),
  };
  /** Bytes of a KV block's records over all layers. */
  readonly #recordBytes: number;
  #info: BackendInfo;
  #blockCost: BlockCost;
  #kernel: Kernel | undefined;
  #threads: Threads | undefined;
  /** Why `#kernel` is gone. */
  #failure = "the backend was disposed";
  /** Output rows of the latest step. */
  #rows = 0;

  constructor(
    config: ModelConfig,
    limits: BackendLimits,
    variant: Variant,
    threads: number,
    kernel: Kernel,
    blockBytes: number,
  ) {
    this.config = config;
    this.limits = limits;
    this.#recordBytes = blockBytes;
    this.#kernel = kernel;
    this.#info = {
      kind: "wasm",
      variant,
      threads,
      weightBytes: kernel.weightBytes,
      kvBytes: limits.kvBlocks * blockBytes,
      prunes: false,
    };
    this.#blockCost = this.#costOf(0, 0);
  }

  /** @param codeBytes Of a block over all layers. */
  #costOf(codeBytes: number, dimensions: number): BlockCost {
    const parts = this.config.layers * this.config.kvHeads;
    return {
      recordBytes: this.#recordBytes / parts,
      codeBytes: codeBytes / parts,
      dimensions,
    };
  }

  /** Bytes of a KV block over all layers, codes included. */
  get #blockBytes(): number {
    return this.#info.kvBytes / this.limits.kvBlocks;
  }

  describe(): BackendInfo {
    return this.#info;
  }

  /** Starts the threads that share the core's memory. */
  async startThreads(module: WebAssembly.Module, memory: WebAssembly.Memory): Promise<void> {
    const team = this.#kernel?.team ?? 0;
    const start = { module, memory, team };
    this.#threads = await startThreads(this.#info.threads - 1, start, (message) => {
      this.#fail(`a thread of the WASM core failed: ${message}`);
    });
  }

  /** The instance is of no use any more. */
  #fail(reason: string): void {
    if (this.#kernel === undefined) return;
    this.#failure = reason;
    this.#release();
  }

  #release(): void {
    if (this.#threads !== undefined) this.#kernel?.stopTeam(this.#threads.team);
    this.#threads?.terminate();
    this.#threads = undefined;
    this.#kernel = undefined;
  }

  /** Runs `work` on the core; whatever it throws leaves the instance unusable. */
  #run<T>(work: (kernel: Kernel) => T): T {
    const kernel = this.#kernel;
    if (kernel === undefined) throw new BackendError(this.#failure, { fatal: true });
    try {
      return work(kernel);
    } catch (cause) {
      this.#fail(`the WASM core failed: ${cause instanceof Error ? cause.message : cause}`);
      throw new BackendError(this.#failure, { fatal: true }, { cause });
    }
  }

  // deno-lint-ignore require-await -- the contract is asynchronous, errors must reject
  async forward(batch: readonly SequenceInput[], signal?: AbortSignal): Promise<ForwardResult> {
    signal?.throwIfAborted();
    validateBatch(batch, this.limits, this.config.vocabularySize, this.#info.prunes === true);
    return this.#run((kernel) => {
      this.#rows = 0;
      kernel.forward(batch);
      let end = 0;
      this.#rows = batch.reduce((sum, sequence) => sum + outputRows(sequence), 0);
      return {
        rows: Array.from({ length: this.#rows }, (_, row) => kernel.stats(row)),
        attention: batch.map((sequence) => {
          const count = kernel.attention(end, end += sequence.tokens.length);
          return attentionStats(this.config, sequence, count, this.#blockCost);
        }),
      };
    });
  }

  // deno-lint-ignore require-await -- as above
  async logits(row: number): Promise<Float32Array> {
    if (!Number.isInteger(row) || row < 0 || row >= this.#rows) {
      throw new RangeError(`Cannot read logits: row is ${row}, the latest step has ${this.#rows}`);
    }
    return this.#run((kernel) => kernel.logits(row));
  }

  // deno-lint-ignore require-await -- as above
  async copyBlocks(pairs: readonly (readonly [from: number, to: number])[]): Promise<void> {
    for (const block of pairs.flat()) validateBlock(block, this.limits.kvBlocks, "copyBlocks");
    this.#run((kernel) => {
      for (const [from, to] of pairs) kernel.copyBlock(from, to);
    });
  }

  // deno-lint-ignore require-await -- as above
  async readBlocks(blocks: readonly number[]): Promise<Uint8Array> {
    for (const block of blocks) validateBlock(block, this.limits.kvBlocks, "readBlocks");
    return this.#run((kernel) => {
      const size = this.#blockBytes;
      const content = new Uint8Array(blocks.length * size);
      for (const [i, block] of blocks.entries()) {
        kernel.readBlock(block, content.subarray(i * size, (i + 1) * size));
      }
      return content;
    });
  }

  // deno-lint-ignore require-await -- as above
  async writeBlocks(blocks: readonly number[], content: Uint8Array): Promise<void> {
    for (const block of blocks) validateBlock(block, this.limits.kvBlocks, "writeBlocks");
    const size = this.#blockBytes;
    if (content.length !== blocks.length * size) {
      const expected = blocks.length * size;
      throw new RangeError(
        `Cannot write KV blocks: content has ${content.length} bytes, expected are ${expected}`,
      );
    }
    this.#run((kernel) => {
      for (const [i, block] of blocks.entries()) {
        kernel.writeBlock(block, content.subarray(i * size, (i + 1) * size));
      }
    });
  }

  // deno-lint-ignore require-await -- as above
  async #gather(on: boolean, stretch = 1): Promise<KeyMoments | undefined> {
    if (!Number.isSafeInteger(stretch) || stretch < 1) {
      throw new RangeError(`Cannot gather: stretch is ${stretch}, allowed is 1 or more`);
    }
    const { layers, kvHeads, headSize } = this.config;
    return this.#run((kernel) => {
      const length = layers * kvHeads * headSize * (1 + 2 * headSize);
      const gathered = on ? undefined : kernel.moments(length);
      kernel.gather(on ? stretch : 0);
      return gathered && momentsOf(gathered.sums, gathered.tokens, this.config);
    });
  }

  // deno-lint-ignore require-await -- as above
  async #useSketch(sketch: KeySketch | undefined): Promise<void> {
    if (sketch !== undefined) checkSketch(sketch, this.config);
    const dimensions = sketch?.dimensions ?? 0;
    const maps = sketch ? packSketch(sketch) : new Float32Array();
    const codeBytes = this.#run((kernel) => {
      return kernel.useSketch(dimensions, maps) ? kernel.sketchBlockBytes : undefined;
    });
    const kvBytes = this.limits.kvBlocks * (this.#recordBytes + (codeBytes ?? 0));
    this.#blockCost = this.#costOf(codeBytes ?? 0, dimensions);
    this.#info = { ...this.#info, kvBytes, prunes: (codeBytes ?? 0) > 0 };
    if (codeBytes !== undefined) return;
    const message = `Cannot reserve key sketches of ${this.limits.kvBlocks} KV blocks: ` +
      "out of WASM memory (4 GiB)";
    throw new BackendError(message, { fatal: false });
  }

  // deno-lint-ignore require-await -- as above
  async dispose(): Promise<void> {
    this.#release();
    this.#rows = 0;
  }
}
