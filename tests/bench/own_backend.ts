/**
 * The WASM backend through its interface, with sequences that hold blocks of their own. Runs under
 * Deno and Bun alike.
 */
import type { Arithmetic } from "../../core/engine/arithmetic.ts";
import {
  type AttentionPlan,
  type Backend,
  BLOCK_SIZE,
  DENSE,
  type SequenceInput,
} from "../../core/engine/backend.ts";
import { openFiles } from "../../core/host/store/file_source.ts";
import { type OpenedModel, openModel } from "../../core/model/gguf/open_model.ts";
import { createWasmBackend } from "../../wasm/backend.ts";

export interface OwnBackendOptions {
  readonly model: string;
  readonly threads: number;
  readonly batch: number;
  /** Most positions of a sequence. */
  readonly contextLength: number;
  /**
   * Sketches the keys, so that attention can be pruned, and reads real text: what pruning costs
   * depends on it. Dense speed does not, and its sequences repeat one token.
   */
  readonly prunes?: boolean;
  /** `int8` where left out. */
  readonly arithmetic?: Arithmetic | undefined;
}

/** Any token; every vocabulary has this one. */
const TOKEN = 65;

export class OwnBackend {
  readonly backend: Backend;
  readonly #blocks: number;
  /** Tokens of every sequence, at least a context of them. */
  readonly #text: Uint32Array;
  readonly #batch: number;
  #filled = 0;

  private constructor(backend: Backend, batch: number, text: Uint32Array) {
    this.backend = backend;
    this.#batch = batch;
    this.#text = text;
    this.#blocks = backend.limits.kvBlocks / batch;
  }

  static async open(options: OwnBackendOptions): Promise<OwnBackend> {
    const { model, threads, batch } = options;
    const contextLength = Math.ceil(options.contextLength / BLOCK_SIZE) * BLOCK_SIZE;
    const sources = await openFiles([model]);
    try {
      const opened = await openModel(sources);
      const backend = await createWasmBackend({
        files: opened.files,
        threads,
        contextLength,
        ...(options.arithmetic && { arithmetic: options.arithmetic }),
        kvBlocks: batch * contextLength / BLOCK_SIZE,
      });
      const text = options.prunes
        ? await prepareToPrune(backend, opened)
        : new Uint32Array(contextLength).fill(TOKEN);
      return new OwnBackend(backend, batch, text);
    } finally {
      await Promise.all(sources.map((source) => source.close()));
    }
  }

  /** Computes the KV of every sequence up to `depth`, where it is not there yet. */
  async fill(depth: number): Promise<void> {
    const step = this.backend.limits.maxBatchTokens;
    for (let index = 0; index < this.#batch; index++) {
      for (let at = this.#filled; at < depth; at += step) {
        await this.run(index, at, Math.min(step, depth - at), "none");
      }
    }
    this.#filled = Math.max(this.#filled, depth);
  }

  /** Runs `count` tokens of one sequence. */
  async run(
    index: number,
    position: number,
    count: number,
    output: SequenceInput["output"],
  ): Promise<void> {
    await this.backend.forward([this.#part(index, position, count, output, DENSE)]);
  }

  /**
   * Milliseconds of a step that decodes the first `batch` sequences, in the mean of `steps` steps from
   * `depth` on, after one that does not count.
   */
  async decode(
    depth: number,
    steps: number,
    { batch = this.#batch, attention = DENSE }: {
      readonly batch?: number;
      readonly attention?: AttentionPlan;
    } = {},
  ): Promise<number> {
    await this.fill(depth);
    const step = (position: number) =>
      this.backend.forward(Array.from(
        { length: batch },
        (_, index) => this.#part(index, position, 1, "last", attention),
      ));
    await step(depth);
    const start = performance.now();
    for (let at = 0; at < steps; at++) await step(depth + at);
    return (performance.now() - start) / steps;
  }

  /** Milliseconds of a prompt of so many tokens, from an empty sequence to its last logits. */
  async prefill(tokens: number): Promise<number> {
    const step = this.backend.limits.maxBatchTokens;
    const start = performance.now();
    for (let at = 0; at < tokens; at += step) {
      const count = Math.min(step, tokens - at);
      await this.run(0, at, count, at + count === tokens ? "last" : "none");
    }
    return performance.now() - start;
  }

  dispose(): Promise<void> {
    return this.backend.dispose();
  }

  #part(
    index: number,
    position: number,
    count: number,
    output: SequenceInput["output"],
    attention: AttentionPlan,
  ): SequenceInput {
    const first = index * this.#blocks;
    return {
      tokens: this.#text.subarray(position, position + count),
      position,
      blockTable: Array.from({ length: this.#blocks }, (_, at) => first + at),
      attention,
      output,
    };
  }
}

/** Sketches the keys as `deno task calibrate` does. @returns Text that is not the sketch's. */
async function prepareToPrune(
  backend: Backend,
  { metadata }: OpenedModel,
): Promise<Uint32Array> {
  const { calibrate } = await import("../../core/host/calibrate/mod.ts");
  const { tokenizerFromGguf } = await import("../../core/model/tokenizer_gguf.ts");
  const { createTokenizer } = await import("../../wasm/tokenizer.ts");
  const { mobyDick } = await import("../eval/texts.ts");
  const tokenizer = await createTokenizer(tokenizerFromGguf(metadata));
  await calibrate(backend, tokenizer, undefined, { model: "", lengths: [] });
  return tokenizer.encode(await mobyDick());
}
