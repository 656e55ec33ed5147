/** Starts an engine in a Worker of its own, so that this thread stays responsive meanwhile. */
import type { Engine } from "../engine/engine.ts";
import { linkToWorker } from "../engine/remote/engine_protocol.ts";
import { connectEngine } from "../engine/remote/remote_engine.ts";
import type { WorkerStart } from "./engine_worker.ts";

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
