/** Finds an adapter, opens a device with what it offers, and tells how it was lost. */
import { BackendError } from "../core/errors.ts";
import { messageOf } from "./checked.ts";

export interface DeviceOptions {
  /** WebGPU's entry point, where it is not `navigator.gpu`, for example that of a package. */
  readonly gpu?: GPU;
  readonly powerPreference?: GPUPowerPreference;
  /** The largest limits that the adapter gives, or exactly those that WebGPU guarantees. */
  readonly limits?: "largest" | "default";
}

/** What is used where it is there: times for benchmarks. Kernels need no optional feature. */
const OPTIONAL_FEATURES = ["timestamp-query"] as const;

/** What kernels could use beyond the guaranteed; `docs/webgpu.md` says which do. */
export interface DeviceFeatures {
  /** WGSL's `dot4I8Packed` and `pack4xI8`. */
  readonly packedDots: boolean;
  readonly shaderF16: boolean;
  readonly subgroups: boolean;
}

/** An open device. */
export interface Device {
  readonly gpu: GPUDevice;
  /** What its adapter and its compiler offer. */
  readonly features: DeviceFeatures;
  /** The adapter's name, for logs. */
  readonly name: string;
  /** Whether a processor plays the GPU: right results, no speed. */
  readonly software: boolean;
  /** Most bytes of a buffer that a kernel can see. */
  readonly bindingBytes: number;
  /** Settles with the reason once the device is gone, destroyed or lost. */
  readonly lost: Promise<string>;
}

/** Limits that are worth raising: everything else of the defaults suffices. */
const RAISED = ["maxStorageBufferBindingSize", "maxBufferSize"] as const;

/**
 * @throws {BackendError} There is no WebGPU, no adapter, or no device to be had. The message says
 * which, and nothing needs to be rebuilt.
 */
export async function openDevice(options: DeviceOptions = {}): Promise<Device> {
  const adapter = await findAdapter(options);
  const requiredFeatures = OPTIONAL_FEATURES.filter((name) => adapter.features.has(name));
  const requiredLimits: Record<string, number> = {};
  if (options.limits !== "default") {
    for (const name of RAISED) requiredLimits[name] = adapter.limits[name];
  }
  let gpu: GPUDevice;
  try {
    gpu = await adapter.requestDevice({ requiredFeatures, requiredLimits });
  } catch (cause) {
    const message = `Cannot open a WebGPU device: ${messageOf(cause)}`;
    throw new BackendError(message, { fatal: false }, { cause });
  }
  return {
    gpu,
    features: featuresOf(adapter, options),
    name: adapterName(adapter.info),
    software: isSoftware(adapter.info),
    bindingBytes: Math.min(gpu.limits.maxStorageBufferBindingSize, gpu.limits.maxBufferSize),
    lost: gpu.lost.then(({ reason, message }) =>
      reason === "destroyed" ? reason : message || "unknown reason"
    ),
  };
}

/** What `openDevice` would open, without opening it. `undefined` where there is nothing. */
export async function probeAdapter(
  options: DeviceOptions = {},
): Promise<{ readonly name: string; readonly software: boolean } | undefined> {
  try {
    const { info } = await findAdapter(options);
    return { name: adapterName(info), software: isSoftware(info) };
  } catch (error) {
    if (error instanceof BackendError) return undefined;
    throw error;
  }
}

async function findAdapter(
  { gpu = globalThis.navigator?.gpu, powerPreference = "high-performance" }: DeviceOptions,
): Promise<GPUAdapter> {
  const fail = (why: string) => new BackendError(`Cannot use WebGPU: ${why}`, { fatal: false });
  if (gpu === undefined) throw fail("this runtime has none");
  let adapter: GPUAdapter | null;
  try {
    adapter = await gpu.requestAdapter({ powerPreference });
  } catch (cause) {
    throw fail(`no adapter was found (${messageOf(cause)})`);
  }
  if (adapter === null) throw fail("no adapter was found; is a GPU driver installed?");
  return adapter;
}

/** Features of the adapter, and of the language that its compiler takes. */
function featuresOf(
  { features }: GPUAdapter,
  { gpu = globalThis.navigator?.gpu }: DeviceOptions,
): DeviceFeatures {
  const { wgslLanguageFeatures: language } = gpu as GPU & {
    readonly wgslLanguageFeatures?: ReadonlySet<string>;
  };
  return {
    packedDots: language?.has("packed_4x8_integer_dot_product") ?? false,
    shaderF16: features.has("shader-f16"),
    subgroups: features.has("subgroups"),
  };
}

function adapterName({ description, device, architecture, vendor }: GPUAdapterInfo): string {
  return description || [vendor, architecture, device].filter(Boolean).join(" ") || "unnamed";
}

/** Some runtimes flag software adapters, all name them. */
function isSoftware(info: GPUAdapterInfo & { readonly isFallbackAdapter?: boolean }): boolean {
  const { isFallbackAdapter = false, description, device, architecture } = info;
  return isFallbackAdapter ||
    /llvmpipe|lavapipe|swiftshader|basic render|warp/i.test(
      `${description} ${device} ${architecture}`,
    );
}
