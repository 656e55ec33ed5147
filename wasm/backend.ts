/**
 * The WASM backend: a Rust core that runs Llama-architecture models with SIMD over a paged KV cache.
 * Calls compute synchronously in this thread; a host that must stay responsive runs it in a Worker.
 */
import type { Backend } from "../core/engine/backend.ts";
import { type Arithmetic, checkArithmetic } from "../core/engine/arithmetic.ts";
import { backendLimits, checkCount } from "../core/engine/backend_limits.ts";
import { BackendError } from "../core/errors.ts";
import type { ModelConfig } from "../core/model/config.ts";
import type { ModelFiles } from "../core/model/tensors.ts";
import { Kernel, type KvType } from "./kernel.ts";
import {
  chooseVariant,
  compile,
  instantiate,
  sharedMemory,
  startThread,
  type Variant,
} from "./loader.ts";
import { WasmBackend } from "./wasm_backend.ts";
import { loadWeights } from "./weights.ts";

export interface WasmBackendOptions {
  readonly files: ModelFiles;
  /** Most positions a sequence may have; the model's own context length where left out. */
  readonly contextLength?: number;
  /** KV blocks of 16 tokens; where left out, four full contexts or 128 MiB, at least one context. */
  readonly kvBlocks?: number;
  /**
   * `int8` where left out; or `f32`, in which quantised matrices meet activations of 16 bits: 1.5 times
   * the time for one sequence, 1.7 to 1.8 times for prompts and batches.
   */
  readonly arithmetic?: Arithmetic;
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
  const { files, kvType = "q8", arithmetic = "int8" } = options;
  checkShape(files.config);
  checkArithmetic(arithmetic);
  const variant = chooseVariant(options.variant ?? "auto", options.threads ?? 1);
  const threads = variant === "threads" ? options.threads ?? 1 : 1;
  const folder = options.artifacts ?? new URL("./lib/", import.meta.url);
  const module = await compile(variant, folder);
  const memory = variant === "threads" ? sharedMemory() : undefined;
  const exports = await instantiate(module, memory);
  if (memory !== undefined) startThread(exports);
  const kernel = new Kernel(exports, files.config);
  const blockBytes = kernel.kvBlockBytes(kvType);
  const affordable = Math.floor(DEFAULT_KV_BYTES / blockBytes);
  const limits = backendLimits(files.config, options, affordable);
  checkCount("threads", options.threads ?? 1);
  await loadWeights(kernel, files, options.onProgress);
  if (!kernel.finish({ ...limits, arithmetic, kvType, threads })) {
    const message = `Cannot reserve ${limits.kvBlocks} KV blocks: out of WASM memory (4 GiB)`;
    throw new BackendError(message, { fatal: true });
  }
  const running = `${arithmetic} ${variant}`;
  const backend = new WasmBackend(files.config, limits, running, threads, kernel, blockBytes);
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
