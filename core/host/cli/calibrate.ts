/** `deno task calibrate`: measures what pruned attention may leave out, and keeps it beside the model. */
import { readFile } from "node:fs/promises";
import process from "node:process";
import { BLOCK_SIZE } from "../../engine/backend.ts";
import { DIVERGENCE_BOUND, LEAST_BOUND } from "../../entropic/safeguards.ts";
import { openModel } from "../../model/gguf/open_model.ts";
import { tokenizerFromGguf } from "../../model/tokenizer_gguf.ts";
import { createTokenizer } from "../../../wasm/tokenizer.ts";
import { calibrate, calibrationPath, modelFingerprint, saveCalibration } from "../calibrate/mod.ts";
import { createBackend, withSources } from "../open_engine.ts";
import { DEFAULT_MODEL } from "../store/known_models.ts";
import { progressBar, resolveModel } from "../store/mod.ts";
import { BACKEND_OPTIONS, backendOptions } from "./model_options.ts";
import { type Arguments, type Command, runCommand } from "./options.ts";

const COMMAND = {
  usage: "calibrate [FILE…]",
  about: `Measures what attention may leave out of a model's context, and keeps it beside the model.
Reads the text FILES, or text of its own. Takes minutes; with --quick seconds, and the shares are
left to the engine's defaults.`,
  options: {
    model: { value: "M", help: "as `deno task model` takes it (default SmolLM2)" },
    "model-dir": { value: "DIR", help: "folder for models (else ENTROPIC_MODEL_DIR)" },
    text: {
      value: "FILES",
      help: "text to calibrate on, files apart by commas (default: own text)",
    },
    bound: { value: "B", help: `most nats of divergence from dense (default ${DIVERGENCE_BOUND})` },
    lengths: { value: "LIST", help: "context lengths to measure at (default 1024,2048,4096,8192)" },
    ...BACKEND_OPTIONS,
    quick: { help: "sketch the keys only" },
    json: { help: "print the result, but for the sketch, as one JSON document" },
  },
  operands: [0, 100],
} as const satisfies Command<string>;

type Given = Arguments<keyof typeof COMMAND.options>;

/** KV blocks for the contenders' own positions, beside the context's. */
const SPARE_BLOCKS = 128;

async function main(given: Given): Promise<void> {
  const lengths = lengthsOf(given.text("lengths"));
  const bound = given.number("bound", LEAST_BOUND, Number.MAX_VALUE);
  const backendSettings = backendOptions(given);
  const { paths } = await resolveModel(given.text("model") ?? DEFAULT_MODEL, {
    dir: given.text("model-dir"),
    onProgress: progressBar(process.stderr),
  });
  const [first = ""] = paths;
  const log = (line: string) => console.error(line);
  const names = [given.text("text"), ...given.operands].filter((name) => name !== undefined);
  const texts = await Promise.all(names.map((name) => readFile(name, "utf8")));
  const calibration = await withSources({ paths }, async (sources) => {
    const { files, metadata } = await openModel(sources);
    const kvBlocks = Math.ceil(files.config.contextLength / BLOCK_SIZE) + SPARE_BLOCKS;
    const [backend, tokenizer, model] = await Promise.all([
      createBackend(files, { ...backendSettings, kvBlocks }, log),
      createTokenizer(tokenizerFromGguf(metadata)),
      modelFingerprint(files),
    ]);
    try {
      return await calibrate(backend, tokenizer, texts.length > 0 ? texts : undefined, {
        model,
        quick: given.flag("quick"),
        ...(bound !== undefined && { bound }),
        ...(lengths !== undefined && { lengths }),
        log,
      });
    } finally {
      await backend.dispose();
    }
  });
  const path = calibrationPath(first);
  await saveCalibration(path, calibration);
  const { model, mass, bound: kept, sketch: { dimensions } } = calibration;
  if (!given.flag("json")) return console.log(path);
  console.log(JSON.stringify({ path, model, dimensions, bound: kept ?? null, mass }));
}

/** @throws {RangeError} Not whole numbers, or not ascending. */
function lengthsOf(given: string | undefined): number[] | undefined {
  if (given === undefined) return undefined;
  const lengths = given.split(",").map(Number);
  const ascending = lengths.every((length, i) => i === 0 || length > (lengths[i - 1] ?? 0));
  if (!lengths.every((length) => length >= 256 && length % BLOCK_SIZE === 0) || !ascending) {
    throw new RangeError(
      `Cannot use --lengths "${given}": it takes multiples of ${BLOCK_SIZE} from 256 on, ascending`,
    );
  }
  return lengths;
}

await runCommand(COMMAND, main);
