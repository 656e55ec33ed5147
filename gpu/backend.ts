/**
 * The WebGPU backend: Llama-architecture models in WGSL kernels over a paged KV cache, weights
 * quantised as in the file. Runs wherever there is a `GPU`: Deno, browsers, and by packages elsewhere.
 */
import { type Arithmetic, checkArithmetic } from "../core/engine/arithmetic.ts";
import { type BackendLimits, BLOCK_SIZE } from "../core/engine/backend.ts";
import { backendLimits } from "../core/engine/backend_limits.ts";
import type { ModelConfig } from "../core/model/config.ts";
import { BackendError } from "../core/errors.ts";
import type { ModelFiles } from "../core/model/tensors.ts";
import { RotaryAngles } from "./angles.ts";
import { checked } from "./checked.ts";
import { type Device, type DeviceOptions, openDevice } from "./device.ts";
import { tokensOfCuts } from "./kernels/matmul_tiles.ts";
import { MOST_TOP_K } from "./kernels/row_summary.ts";
import { KvCache } from "./kv_cache.ts";
import { blockBytes, type KvLayout, type KvType } from "./kv_layout.ts";
import { Pipelines } from "./pipelines.ts";
import { Program } from "./program.ts";
import { rowDispatches } from "./row_stages.ts";
import { stepBuffers } from "./step_buffers.ts";
import { WebGpuBackend } from "./webgpu_backend.ts";
import { loadWeights } from "./weights.ts";

export { probeAdapter } from "./device.ts";

export interface WebGpuBackendOptions extends DeviceOptions, Partial<BackendLimits> {
  readonly files: ModelFiles;
  /** Halves, or exact floats as the reference of tests; `f16` where left out. */
  readonly kvType?: KvType;
  /**
   * How matrices are multiplied: `f32` where left out, exact but for rounding; or `int8`, which rounds
   * activations to 8 bits before quantised weights, as the WASM core does by default.
   */
  readonly arithmetic?: Arithmetic;
  /**
   * Whether prompts' activations go through workgroup memory, which changes no bit. Where left out, they
   * do on a GPU, and in `f32` not on a processor that plays one, where it is memory like any other.
   */
  readonly staging?: boolean;
  /** Most bytes of a tensor in one piece; what the device allows where left out. */
  readonly bindingBytes?: number;
  /** Whether all kernels are compiled at once, or each when a step first needs it. Default true. */
  readonly warmUp?: boolean;
  readonly onProgress?: (loaded: number, total: number) => void;
}

/** Bytes that the default number of KV blocks may take. */
const DEFAULT_KV_BYTES = 512 * 2 ** 20;

/**
 * Opens a device and loads a model into its memory.
 *
 * @throws {RangeError} An option is out of range, or the model's shape is not one of the kernels'.
 * @throws {ModelError} The model's file cannot be read, or a tensor cannot be laid out.
 * @throws {BackendError} There is no adapter, no device, or none that can do the arithmetic (not fatal:
 * another backend may do), or its memory is exhausted.
 */
export async function createWebGpuBackend(options: WebGpuBackendOptions): Promise<WebGpuBackend> {
  const { config } = options.files;
  checkShape(config);
  const device = await openDevice(options);
  try {
    return await createOn(device, options);
  } catch (error) {
    device.gpu.destroy();
    throw error;
  }
}

async function createOn(device: Device, options: WebGpuBackendOptions): Promise<WebGpuBackend> {
  const { files, kvType: type = "f16", arithmetic = "f32", onProgress } = options;
  checkArithmetic(arithmetic);
  checkDevice(device, arithmetic);
  const { staging = arithmetic === "int8" || !device.software } = options;
  const { config } = files;
  const { gpu } = device;
  const bindingBytes = Math.min(device.bindingBytes, options.bindingBytes ?? Infinity);
  const layout: KvLayout = { type, kvHeads: config.kvHeads, headSize: config.headSize };
  const limits = limitsOf(options, layout, device.bindingBytes);
  const weights = await loadWeights(gpu, { files, bindingBytes, onProgress });
  return await checked(gpu, "reserve buffers", async () => {
    const buffers = stepBuffers(gpu, config, limits, device.bindingBytes);
    const cache = new KvCache(gpu, layout, config.layers, limits.kvBlocks);
    const pipelines = new Pipelines(gpu);
    const { topK } = limits;
    const parts = { config, topK, arithmetic, staging, pipelines, weights, buffers, cache };
    const [program, rows] = await Promise.all([Program.create(parts), rowDispatches(parts)]);
    if (options.warmUp !== false) {
      const counts = tokensOfCuts(staging).map((count) => ({ tokens: count, rows: count }));
      await Promise.all(counts.map((count) => program.prepare(count)));
    }
    const angles = new RotaryAngles(config, weights.ropeFactors);
    return new WebGpuBackend(device, limits, parts, program, rows, angles);
  });
}

/** @throws {BackendError} The device lacks what it takes. */
function checkDevice({ name, features }: Device, arithmetic: Arithmetic): void {
  if (arithmetic !== "int8" || features.packedDots) return;
  throw new BackendError(
    `Cannot run WebGPU in arithmetic int8: ${name} lacks packed_4x8_integer_dot_product`,
    { fatal: false },
  );
}

function limitsOf(
  { files: { config }, ...asked }: WebGpuBackendOptions,
  layout: KvLayout,
  bindingBytes: number,
): BackendLimits {
  // A layer's cache is one buffer.
  const most = Math.floor(bindingBytes / blockBytes(layout));
  const affordable = Math.floor(DEFAULT_KV_BYTES / (config.layers * blockBytes(layout)));
  const limits = backendLimits(config, asked, Math.min(most, affordable));
  const check = (name: string, value: number, most: number) => {
    if (value <= most) return;
    throw new RangeError(
      `Cannot create WebGPU backend: ${name} is ${value}, allowed is at most ${most}`,
    );
  };
  // Where nobody asked for blocks, they are as many as one context takes.
  if (asked.kvBlocks === undefined) check("contextLength", limits.contextLength, most * BLOCK_SIZE);
  check("kvBlocks", limits.kvBlocks, most);
  check("topK", limits.topK, MOST_TOP_K);
  return limits;
}

/** @throws {RangeError} The kernels' vectors do not fit the model. */
function checkShape({ hiddenSize, feedForwardSize, headSize, heads, rope }: ModelConfig): void {
  const check = (name: string, value: number, unit: number, most = Infinity) => {
    if (value % unit === 0 && value <= most) return;
    const allowed = `multiples of ${unit}${most < Infinity ? ` up to ${most}` : ""}`;
    throw new RangeError(`Cannot run model on WebGPU: ${name} is ${value}, allowed are ${allowed}`);
  };
  check("hidden size", hiddenSize, 32);
  check("feed-forward size", feedForwardSize, 32);
  check("head size", headSize, 8, 256);
  check("heads times head size", heads * headSize, 32);
  check("rope dimensions", rope.dimensions, 2, headSize);
}
