/** The options of every command that loads a model, and how they reach `loadModel`. */
import process from "node:process";
import { type BackendName, BACKENDS, type LoadOptions } from "../../../mod.ts";
import { type Arithmetic, ARITHMETICS } from "../../../gpu/kernels/matmul_parameters.ts";
import { progressBar } from "../store/mod.ts";
import type { Arguments, Option } from "./options.ts";

/** Of every command that picks a backend. */
export const BACKEND_OPTION = {
  value: "B",
  help: `${BACKENDS.join(", ")} (default auto: WebGPU on a GPU, else WASM)`,
} as const satisfies Option;

export const MODEL_OPTIONS = {
  model: {
    value: "M",
    help: "path, https URL, hf:owner/repo/file.gguf, pip:package or a known name",
  },
  "model-dir": { value: "DIR", help: "folder for models (else ENTROPIC_MODEL_DIR)" },
  backend: BACKEND_OPTION,
  "gpu-arithmetic": {
    value: "A",
    help: `how WebGPU multiplies: ${ARITHMETICS.join(", ")} (default f32; int8 is WASM's way)`,
  },
  threads: { value: "N", help: "compute threads (default 1)" },
  context: { value: "N", help: "longest prompt plus completion, in tokens (default: the model's)" },
  "kv-blocks": { value: "N", help: "KV cache blocks of 16 tokens, shared by all requests" },
} as const satisfies Record<string, Option>;

/** Loading reports its progress on standard error, where a model has to be fetched. */
export function loadOptions(given: Arguments<keyof typeof MODEL_OPTIONS>): LoadOptions {
  const gpuArithmetic = given.text("gpu-arithmetic");
  if (gpuArithmetic !== undefined && !isArithmetic(gpuArithmetic)) {
    throw new RangeError(
      `Cannot use --gpu-arithmetic "${gpuArithmetic}": it takes ${ARITHMETICS.join(", ")}`,
    );
  }
  const options = {
    model: given.text("model"),
    modelDir: given.text("model-dir"),
    backend: backendName(given),
    gpuArithmetic,
    threads: given.integer("threads", 1, 256),
    context: given.integer("context", 1, 2 ** 24),
    kvBlocks: given.integer("kv-blocks", 1, 2 ** 24),
  };
  return {
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
    onProgress: progressBar(process.stderr),
    log: (line) => console.error(line),
  };
}

/** @throws {RangeError} There is no backend of that name. */
export function backendName(given: Arguments<"backend">): BackendName | undefined {
  const backend = given.text("backend");
  if (backend === undefined || isBackend(backend)) return backend;
  throw new RangeError(`Cannot use --backend "${backend}": it takes ${BACKENDS.join(", ")}`);
}

function isArithmetic(name: string): name is Arithmetic {
  return (ARITHMETICS as readonly string[]).includes(name);
}

function isBackend(name: string): name is BackendName {
  return (BACKENDS as readonly string[]).includes(name);
}
