/** The Backend contract over one instance of the core. */
import type {
  Backend,
  BackendInfo,
  BackendLimits,
  ForwardResult,
  KeyMoments,
  KeySketch,
  OverriddenDraw,
  Pruning,
  SequenceInput,
  Uncertainty,
} from "../core/engine/backend.ts";
import { BackendError } from "../core/errors.ts";
import type { ModelConfig } from "../core/model/config.ts";
import { attentionStats, type BlockCost } from "../core/engine/attention_cost.ts";
import type { Kernel } from "./kernel.ts";
import { DIMENSIONS, packSketch } from "./pruning.ts";
import { startThreads, type Threads } from "./threads.ts";
import {
  outputRows,
  validateBatch,
  validateBlock,
  validateTokens,
} from "../core/engine/backend_checks.ts";
import { checkSketch, momentsOf } from "../core/engine/backend_pruning.ts";

export class WasmBackend implements Backend {
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
    variant: string,
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
    this.#checkRow(row);
    return this.#run((kernel) => new Float32Array(kernel.logits(row)));
  }

  // deno-lint-ignore require-await -- as above
  async logitsOf(row: number, ids: ArrayLike<number>): Promise<Float32Array> {
    this.#checkRow(row);
    validateTokens(ids, this.config.vocabularySize, "logitsOf");
    return this.#run((kernel) => {
      const logits = kernel.logits(row);
      return Float32Array.from(ids, (id) => logits[id] as number);
    });
  }

  // deno-lint-ignore require-await -- as above
  async draw(row: number, draw: OverriddenDraw): Promise<number | undefined> {
    this.#checkRow(row);
    validateTokens(draw.overrides.ids, this.config.vocabularySize, "draw");
    return this.#run((kernel) => kernel.draw(row, draw));
  }

  // deno-lint-ignore require-await -- as above
  async tempered(row: number, temperature: number): Promise<Uncertainty> {
    this.#checkRow(row);
    if (!(temperature > 0 && temperature < Infinity)) {
      throw new RangeError(`Cannot temper logits: temperature is ${temperature}, must be above 0`);
    }
    return this.#run((kernel) => kernel.tempered(row, temperature));
  }

  #checkRow(row: number): void {
    if (Number.isInteger(row) && row >= 0 && row < this.#rows) return;
    throw new RangeError(`Cannot read logits: row is ${row}, the latest step has ${this.#rows}`);
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
    if (sketch !== undefined) checkSketch(sketch, this.config, DIMENSIONS);
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
