/** Loads a model: finds its file, opens an engine on it, and fits tokenizer and chat template. */
import type { LanguageModel } from "../language_model.ts";
import { chatTemplateFromGguf } from "../model/chat_template_gguf.ts";
import { openModel } from "../model/gguf/open_model.ts";
import { checkNames, type Names, show } from "../options.ts";
import type { ByteSource } from "../model/source.ts";
import { tokenizerFromGguf } from "../model/tokenizer_gguf.ts";
import { createTokenizer } from "../../wasm/tokenizer.ts";
import { type EngineSettings, type ModelLocation, openEngine, withSources } from "./open_engine.ts";
import { DEFAULT_MODEL } from "./store/known_models.ts";
import { opfsRoot } from "./store/opfs.ts";
import { OpfsStore } from "./store/opfs_store.ts";
import type { ReportProgress } from "./store/transfer_meter.ts";
import { hasWorkers, portableModel, startWorkerEngine } from "./worker_engine.ts";

export interface LoadOptions extends EngineSettings {
  /**
   * A path, an https URL, `hf:owner/repo/file.gguf`, `pip:package` or a known name, or the bytes
   * themselves (all parts of a split file). SmolLM2-135M-Instruct where left out. In a browser a path
   * is a URL of the page's own site, and there are no packages.
   */
  readonly model?: string | readonly ByteSource[];
  /** Where fetched models are kept; in a browser, always its private file system. */
  readonly modelDir?: string;
  /** What requests call the model; from its file name where left out. */
  readonly id?: string;
  /**
   * Run the engine in a Worker, so that this thread stays responsive. Default false. Needs a model
   * in files or in blobs (`BlobSource`), and a runtime with Web Workers; elsewhere the engine runs
   * in this thread.
   */
  readonly worker?: boolean;
  /** Told how far fetching is. */
  readonly onProgress?: ReportProgress;
  /** Takes lines for people. */
  readonly log?: (line: string) => void;
  readonly signal?: AbortSignal;
}

const OPTIONS: Names<LoadOptions> = {
  model: true,
  modelDir: true,
  id: true,
  worker: true,
  backend: true,
  threads: true,
  arithmetic: true,
  context: true,
  kvBlocks: true,
  prefillChunk: true,
  maxWaiting: true,
  policy: true,
  tail: true,
  attention: true,
  entropyFloor: true,
  onProgress: true,
  log: true,
  signal: true,
};

/**
 * Loads a model, fetching it first where it is not there yet.
 *
 * @throws {ModelError} The model cannot be found, fetched or used; the message says why.
 * @throws {RangeError} A setting is out of range.
 * @throws {TypeError} There is no such option, or `model` is of another type.
 *
 * @example
 * ```ts
 * const model = await loadModel({ context: 2048, worker: true });
 * ```
 */
export async function loadModel(options: LoadOptions = {}): Promise<LanguageModel> {
  checkNames("loadModel", options, OPTIONS);
  const { model = DEFAULT_MODEL } = options;
  if (typeof model !== "string" && !(Array.isArray(model) && model.length > 0)) {
    throw new TypeError(
      `Cannot use ${show(model)} as model: it is a name, a path, a URL, or an array of sources`,
    );
  }
  const { id, location } = typeof model === "string"
    ? await findModel(model, options)
    : { id: model[0]?.name ?? "model", location: { sources: model } };
  return await withSources(location, async (sources) => {
    const opened = await openModel(sources);
    const { metadata } = opened;
    const settings = engineSettings(options);
    const spec = tokenizerFromGguf(metadata);
    const template = chatTemplateFromGguf(metadata, spec);
    const { log } = options;
    const portable = options.worker && hasWorkers() ? portableModel(location) : undefined;
    const [engine, tokenizer] = await Promise.all([
      portable
        ? startWorkerEngine({ model: portable, settings }, log)
        : openEngine(location, settings, { opened, ...log && { log } }),
      createTokenizer(spec),
    ]);
    return {
      id: options.id ?? id,
      created: Math.floor(Date.now() / 1000),
      engine,
      tokenizer,
      ...(template && { template }),
    };
  });
}

async function findModel(
  spec: string,
  { modelDir, onProgress, log, signal }: LoadOptions,
): Promise<{ id: string; location: ModelLocation }> {
  const transfer = { ...(onProgress && { onProgress }), ...(signal && { signal }) };
  if (await opfsRoot() !== undefined) {
    const { fetchToOpfs } = await import("./store/opfs_models.ts");
    const { id, sources } = await fetchToOpfs(spec, await OpfsStore.open(), transfer);
    return { id, location: { sources } };
  }
  const { resolveModel } = await import("./store/resolve_model.ts");
  const { id, paths } = await resolveModel(spec, {
    dir: modelDir,
    ...transfer,
    ...(log && { log }),
  });
  return { id, location: { paths } };
}

/** The part of the options that an engine takes: what crosses to a Worker has to be plain data. */
function engineSettings(options: LoadOptions): EngineSettings {
  const { backend, arithmetic, threads, context, kvBlocks, prefillChunk, maxWaiting } = options;
  const { policy, tail, attention, entropyFloor } = options;
  const resources = { backend, threads, context, kvBlocks, prefillChunk, maxWaiting };
  const given = { ...resources, arithmetic, policy, tail, attention, entropyFloor };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
