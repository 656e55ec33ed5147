/** Starts an engine in a Worker of its own, so that this thread stays responsive meanwhile. */
import type { Engine } from "../engine/engine.ts";
import { linkToWorker } from "../engine/remote/engine_protocol.ts";
import { connectEngine } from "../engine/remote/remote_engine.ts";
import { BlobSource } from "../model/memory_source.ts";
import type { PortableModel, WorkerStart } from "./engine_worker.ts";
import type { ModelLocation } from "./open_engine.ts";

/** Whether this runtime has Web Workers; Node, for one, has another kind. */
export const hasWorkers = (): boolean => typeof Worker === "function";

/**
 * @param log Takes lines for people.
 * @throws {ModelError} The model cannot be used.
 */
export function startWorkerEngine(
  start: WorkerStart,
  log?: (line: string) => void,
): Promise<Engine> {
  return connectEngine(() => {
    const worker = new Worker(new URL("./engine_worker.ts", import.meta.url), { type: "module" });
    worker.postMessage(start);
    return linkToWorker(worker);
  }, { ...log && { log } });
}

/** What a Worker can open by itself; `undefined` where only this thread can reach the bytes. */
export function portableModel(location: ModelLocation): PortableModel | undefined {
  if ("paths" in location) return location;
  const blobs = location.sources.filter((source) => source instanceof BlobSource);
  if (blobs.length < location.sources.length || !blobs.every(isCloneable)) return undefined;
  return { blobs: blobs.map(({ name, blob }) => ({ name, blob })) };
}

/** Deno's blobs of files on disk are not. Asked of an empty slice, for Bun copies the bytes. */
function isCloneable({ blob }: BlobSource): boolean {
  try {
    structuredClone(blob.slice(0, 0));
    return true;
  } catch {
    return false;
  }
}
