/**
 * Where the real model lies, for tests that also run in a page: there it lies at the server that the
 * page came from.
 */
import type { ModelLocation } from "../../core/host/open_engine.ts";
import { BlobSource } from "../../core/model/memory_source.ts";

/** What a page's server calls it. */
export const MODEL_PATH = "/model.gguf";

/** `undefined` where there is none. */
export const REAL_MODEL_LOCATION: ModelLocation | undefined = "document" in globalThis
  ? await atServer()
  : await onDisk();

async function onDisk(): Promise<ModelLocation | undefined> {
  const { REAL_MODEL } = await import("./real_model.ts");
  return REAL_MODEL === undefined ? undefined : { paths: [REAL_MODEL] };
}

async function atServer(): Promise<ModelLocation | undefined> {
  const response = await fetch(MODEL_PATH);
  if (!response.ok) return undefined;
  return { sources: [new BlobSource(MODEL_PATH, await response.blob())] };
}
