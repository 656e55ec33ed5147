/**
 * WebGPU's entry point: the runtime's own, or that of a package which brings Dawn to Bun and Node.
 * Neither package is a dependency, for together they have 150 MB; who wants one installs it.
 */
import { BackendError } from "../errors.ts";

/** What the packages export that is used here. */
interface WebGpuPackage {
  /** Of `webgpu`. The options are Dawn's. */
  create(options: readonly string[]): GPU;
  readonly globals: object;
  /** Of `bun-webgpu`. */
  createGPUInstance(): GPU;
  readonly globalConstructors: object;
}

/** The package for this runtime; `undefined` where there is none. */
function packageName(): "bun-webgpu" | "webgpu" | undefined {
  if ("Bun" in globalThis) return "bun-webgpu";
  if ("Deno" in globalThis) return undefined;
  const { process } = globalThis as { readonly process?: { readonly versions?: object } };
  return "node" in (process?.versions ?? {}) ? "webgpu" : undefined;
}

/** Held for good: Node's Dawn goes with its entry point, whatever is in use. */
let packaged: Promise<GPU> | undefined;

/** @throws {BackendError} There is none; the message names the package that would help. Not fatal. */
export async function runtimeGpu(): Promise<GPU> {
  return globalThis.navigator?.gpu ?? await (packaged ??= openPackage());
}

async function openPackage(): Promise<GPU> {
  const fail = (why: string, cause?: unknown) =>
    new BackendError(`Cannot use WebGPU: ${why}`, { fatal: false }, { cause });
  const name = packageName();
  if (name === undefined) throw fail("this runtime has none");
  try {
    const found: WebGpuPackage = await import(name);
    // Flags of buffers and the like, which are globals in runtimes with WebGPU.
    Object.assign(globalThis, name === "webgpu" ? found.globals : found.globalConstructors);
    return name === "webgpu" ? found.create([]) : withTrueLimits(found.createGPUInstance());
  } catch (cause) {
    const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown };
    throw code === "ERR_MODULE_NOT_FOUND"
      ? fail(`this runtime has none; install the package ${name}`, cause)
      : fail(`the package ${name} fails (${message})`, cause);
  }
}

/**
 * `bun-webgpu` (0.1.7) finds some limits of every adapter to be 0, and then refuses the defaults that
 * it fills in for them itself. Where Dawn finds no adapter, it offers one that computes nothing.
 */
export function withTrueLimits(gpu: GPU): GPU {
  const requestAdapter = async (options?: GPURequestAdapterOptions) => {
    const adapter = await gpu.requestAdapter(options);
    if (adapter === null || adapter.info.device === "null-backend") return null;
    const unknown = Object.entries(adapter.limits)
      .filter(([name, limit]) => name.startsWith("max") && limit === 0);
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = (descriptor = {}) =>
      requestDevice({
        ...descriptor,
        requiredLimits: { ...Object.fromEntries(unknown), ...descriptor.requiredLimits },
      });
    return adapter;
  };
  const { wgslLanguageFeatures } = gpu as GPU & { readonly wgslLanguageFeatures?: object };
  return { requestAdapter, wgslLanguageFeatures } as unknown as GPU;
}
