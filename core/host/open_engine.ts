/**
 * Opens an engine on a model's files. Picks the backend: the one place besides `mod.ts` that names
 * one, so that a Worker with an engine need not load the HTTP server along with `mod.ts`.
 */
import type { Arithmetic } from "../engine/arithmetic.ts";
import type { AttentionSettings } from "../engine/attention/attention_settings.ts";
import type { Backend } from "../engine/backend.ts";
import { checkCount } from "../engine/backend_limits.ts";
import type { Engine } from "../engine/engine.ts";
import { checkOptions, type LocalEngineOptions } from "../engine/engine_options.ts";
import { LocalEngine } from "../engine/local_engine.ts";
import { BackendError, ModelError } from "../errors.ts";
import { createPolicy, type PolicyName } from "../engine/scheduling/policies/mod.ts";
import { type OpenedModel, openModel } from "../model/gguf/open_model.ts";
import type { ByteSource } from "../model/source.ts";
import type { ModelFiles } from "../model/tensors.ts";
import type { WebGpuBackendOptions } from "../../gpu/backend.ts";
import { createWasmBackend } from "../../wasm/backend.ts";
import { calibrateBackend, type CalibratedBackend } from "./calibrated_backend.ts";
import { mayHaveGpu } from "./gpu_nodes.ts";
import { runtimeGpu } from "./runtime_gpu.ts";

/**
 * The backends that can be asked for. `auto` takes WebGPU where there is a GPU, else WASM; an adapter
 * that only plays a GPU in software is none, for WASM is faster.
 */
export const BACKENDS = ["auto", "wasm", "webgpu"] as const;
export type BackendName = typeof BACKENDS[number];

/** How an engine runs. Plain data: it crosses to a Worker as it is. */
export interface EngineSettings {
  readonly backend?: BackendName;
  /** Most compute threads; 1 where left out. `EngineInfo.backend` tells how many there are. */
  readonly threads?: number;
  /**
   * How quantised matrices meet activations: `int8` rounds these to 8 bits, the default on WASM; `f32`,
   * the default on WebGPU, keeps them, so nearly that the greedy texts of both backends agree. On WASM it
   * takes 1.5 times as long for one sequence, 1.7 to 1.8 times for prompts and batches.
   */
  readonly arithmetic?: Arithmetic;
  /** Longest prompt plus completion in tokens; the model's own context length where left out. */
  readonly context?: number;
  /** KV blocks of 16 tokens; where left out, as many as the backend finds sensible. */
  readonly kvBlocks?: number;
  /** Most prompt tokens in a step in which other sequences decode. */
  readonly prefillChunk?: number;
  /** Most sequences that wait for a place; beyond it requests are refused with 503. */
  readonly maxWaiting?: number;
  /** Who runs first; `fcfs` where left out. */
  readonly policy?: PolicyName;
  /**
   * How long `mlfq`, `paper` and `entropic` let a request wait for the sake of the mean, in the time of
   * a long answer (384 tokens); 100 where left out. Less is fairer to the longest waits.
   */
  readonly tail?: number;
  /**
   * How generated tokens attend, and within which limits; densely where left out. Requests may ask for
   * more where the model has a calibration beside it.
   */
  readonly attention?: AttentionSettings;
  /** Entropy below this, in nats, counts as this much in entropic time; 0 where left out. */
  readonly entropyFloor?: number;
}

/** What the caller of `openEngine` has at hand. */
export interface OpeningContext {
  /** The model, where its header has been read already. */
  readonly opened?: OpenedModel;
  /** Takes lines for people. */
  readonly log?: (line: string) => void;
}

/** Where a model lies: files on disk, or sources that the caller keeps open. */
export type ModelLocation =
  | { readonly paths: readonly string[] }
  | { readonly sources: readonly ByteSource[] };

/**
 * @throws {ModelError} The model cannot be used.
 * @throws {RangeError} A setting is out of range.
 */
export async function openEngine(
  location: ModelLocation,
  settings: EngineSettings = {},
  { opened, log = () => {} }: OpeningContext = {},
): Promise<Engine> {
  const { prefillChunk, maxWaiting, policy = "fcfs", tail, entropyFloor } = settings;
  const options: LocalEngineOptions = {
    policy: createPolicy(policy, tail),
    ...(prefillChunk !== undefined && { prefillChunk }),
    ...(maxWaiting !== undefined && { maxWaiting }),
    ...(entropyFloor !== undefined && { entropyFloor }),
    ...(settings.attention !== undefined && { attention: settings.attention }),
    log,
  };
  checkOptions(options);
  const attention = { policy: "off", ...settings.attention } as const;
  const open = async (model: OpenedModel): Promise<CalibratedBackend> => {
    const path = "paths" in location ? location.paths[0] : undefined;
    const backend = await createBackend(model.files, settings, log);
    return await calibrateBackend(backend, model, { policy: attention.policy, path, log });
  };
  const reopen = () =>
    withSources(location, async (sources) => await open(await openModel(sources)));
  const { backend, calibration } = opened ? await open(opened) : await reopen();
  return new LocalEngine(backend, {
    ...options,
    attention: {
      ...(calibration && { massByLength: calibration.mass }),
      ...(calibration?.bound !== undefined && { divergence: calibration.bound }),
      ...attention,
    },
    recover: async () => (await reopen()).backend,
  });
}

/**
 * The backend that an engine of these settings runs on.
 *
 * @param log Told why `auto` takes WASM where there is WebGPU.
 * @param mayAsk Whether `auto` asks for an adapter at all.
 * @throws {ModelError} The model cannot be used.
 * @throws {RangeError} A setting is out of range.
 * @throws {BackendError} `webgpu` was asked for, and there is no adapter or no device.
 */
export async function createBackend(
  files: ModelFiles,
  settings: EngineSettings = {},
  log: (line: string) => void = () => {},
  mayAsk: () => Promise<boolean> = mayHaveGpu,
): Promise<Backend> {
  const { backend = "auto", arithmetic, threads, context, kvBlocks } = settings;
  if (!BACKENDS.includes(backend)) {
    throw new RangeError(`Cannot use backend "${backend}": it takes ${BACKENDS.join(", ")}`);
  }
  // By the name that it has here; the backend calls it `contextLength`.
  if (context !== undefined) checkCount("context", context);
  const options = {
    files,
    ...(context !== undefined && { contextLength: context }),
    ...(kvBlocks !== undefined && { kvBlocks }),
    ...(arithmetic !== undefined && { arithmetic }),
  };
  if (backend === "webgpu") return await onWebGpu(await runtimeGpu(), options);
  const onGpu = backend === "auto" && await mayAsk() ? await onRealGpu(options, log) : undefined;
  if (onGpu) return onGpu;
  return await createWasmBackend({ ...options, ...(threads !== undefined && { threads }) });
}

/** Loaded here, for most hosts have no GPU. */
const webGpu = () => import("../../gpu/backend.ts");

async function onWebGpu(gpu: GPU, options: WebGpuBackendOptions): Promise<Backend> {
  return await (await webGpu()).createWebGpuBackend({ ...options, gpu });
}

/** The backend of a GPU; `undefined` where there is none, or a processor plays it. */
async function onRealGpu(
  options: WebGpuBackendOptions,
  log: (line: string) => void,
): Promise<Backend | undefined> {
  try {
    const gpu = await runtimeGpu();
    const adapter = await (await webGpu()).probeAdapter({ gpu });
    if (adapter?.software === false) return await onWebGpu(gpu, options);
    const found = adapter ? `only a software adapter (${adapter.name})` : "no adapter";
    log(`WebGPU has ${found}; using WASM`);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    log(`${error.message}; using WASM`);
  }
  return undefined;
}

/**
 * Whether there is no WebGPU to be had, not for this model or context, or one that fails to load it.
 * WASM refuses by itself what is wrong with a setting; anything else is a mistake in this project.
 */
function isRefusal(error: unknown): error is Error {
  return [BackendError, ModelError, RangeError].some((type) => error instanceof type);
}

/** Lends a model's sources to `use`, and closes them where it opened them. */
export async function withSources<T>(
  location: ModelLocation,
  use: (sources: readonly ByteSource[]) => Promise<T>,
): Promise<T> {
  if ("sources" in location) return await use(location.sources);
  // Loaded here, for the browser and edge hosts have no files.
  const { openFiles } = await import("./store/file_source.ts");
  const sources = await openFiles(location.paths);
  try {
    return await use(sources);
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}
