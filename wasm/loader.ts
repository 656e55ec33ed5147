/**
 * Chooses, fetches and instantiates the WASM artifact of the core. An engine rejects a whole module
 * for one opcode that it does not know, so there is an artifact for each level of SIMD; tiny probe
 * modules tell which one this engine takes.
 */
import { readAsset } from "./asset.ts";
import type { InitOutput } from "./lib/kernels_relaxed.d.ts";
import type { InitOutput as ThreadsOutput } from "./lib/kernels_threads.d.ts";

/** What an artifact needs of its engine. */
export type Variant = "simd128" | "relaxed" | "threads";

/** The exports of an instance. Pointers and sizes come signed: use `>>> 0`. */
export type KernelExports = InitOutput;

/** The exports of an instance that shares its memory. */
export type ThreadExports = ThreadsOutput;

/** A module of one function (v128, v128) -> v128 whose body is one SIMD instruction. */
function simdProbe(...opcode: number[]): Uint8Array<ArrayBuffer> {
  const body = [0, 0x20, 0, 0x20, 1, 0xfd, ...opcode, 0x0b];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00], // "\0asm", version 1
    ...[0x01, 0x07, 0x01, 0x60, 0x02, 0x7b, 0x7b, 0x01, 0x7b], // one type: (v128, v128) -> v128
    ...[0x03, 0x02, 0x01, 0x00], // one function of that type
    ...[0x0a, body.length + 2, 0x01, body.length, ...body], // its code
  ]);
}

const PROBES: Record<Variant, Uint8Array<ArrayBuffer>> = {
  simd128: simdProbe(0xba, 0x01), // i32x4.dot_i16x8_s
  relaxed: simdProbe(0x92, 0x02), // i16x8.relaxed_dot_i8x16_i7x16_s
  // A module with nothing but a shared memory of one page.
  threads: Uint8Array.from(
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x05, 0x04, 0x01, 0x03, 0x01, 0x01],
  ),
};

/** Whether this engine runs an artifact. Threads take relaxed SIMD, shared memory and Workers. */
export function supports(variant: Variant): boolean {
  const accepts = (probe: Variant) => WebAssembly.validate(PROBES[probe]);
  if (variant !== "threads") return accepts(variant);
  // Browsers have shared memory only for pages that are isolated from other origins.
  const shared = typeof SharedArrayBuffer !== "undefined" && typeof Worker !== "undefined";
  return shared && accepts("relaxed") && accepts("threads");
}

/**
 * The artifact to run with at most `threads` threads.
 *
 * @throws {RangeError} This engine cannot run the variant that was asked for, or has no SIMD at all.
 */
export function chooseVariant(wanted: Variant | "auto", threads: number): Variant {
  if (wanted !== "auto") {
    if (supports(wanted)) return wanted;
    throw new RangeError(`Cannot run WASM variant ${wanted}: this engine does not support it`);
  }
  if (threads > 1 && supports("threads")) return "threads";
  if (supports("relaxed")) return "relaxed";
  if (supports("simd128")) return "simd128";
  throw new RangeError("Cannot run the WASM core: this engine has no WebAssembly SIMD");
}

const modules = new Map<string, Promise<WebAssembly.Module>>();

/** Compiles an artifact, once for each place it comes from. */
export function compile(variant: Variant, folder: URL): Promise<WebAssembly.Module> {
  const url = new URL(`kernels_${variant}_bg.wasm`, folder);
  let module = modules.get(url.href);
  if (module === undefined) {
    module = readAsset(url).then((bytes) => WebAssembly.compile(bytes));
    modules.set(url.href, module);
    module.catch(() => modules.delete(url.href));
  }
  return module;
}

/** In pages of 64 KiB. The artifact is linked for 4 GiB at most, and begins with fewer than these. */
const SHARED_MEMORY = { initial: 64, maximum: 65536, shared: true };

/** A memory that threads can share. */
export function sharedMemory(): WebAssembly.Memory {
  return new WebAssembly.Memory(SHARED_MEMORY);
}

/** Gives the calling thread a stack and thread-local storage of its own in a shared memory. */
export function startThread(exports: KernelExports): ThreadExports {
  const threads = exports as unknown as ThreadExports;
  threads.__wbindgen_start(0); // 0: the default stack size
  return threads;
}

/**
 * A fresh instance, with a memory of its own unless one is given. The interface of the core is numbers only, so of what
 * wasm-bindgen's own glue imports just two functions are left, and the glue itself, which allows one
 * instance a process, is not needed.
 */
export async function instantiate(
  module: WebAssembly.Module,
  memory?: WebAssembly.Memory,
): Promise<KernelExports> {
  const imports: WebAssembly.Imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const namespace = (imports[from] ??= {}) as Record<string, WebAssembly.ImportValue>;
    if (kind === "memory" && memory !== undefined) namespace[name] = memory;
    else namespace[name] = name.includes("throw") ? raise : () => {};
  }
  const instance = await WebAssembly.instantiate(module, imports);
  return instance.exports as unknown as KernelExports;
}

function raise(): never {
  throw new WebAssembly.RuntimeError("the core was called while it was busy");
}
