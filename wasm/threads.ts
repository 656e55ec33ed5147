/** The Workers that share a core's memory and work with it. */
import { BackendError } from "../core/errors.ts";
import type { ThreadAnswer, ThreadStart } from "./thread_worker.ts";

/** Milliseconds that a Worker may take to start. */
const PATIENCE = 10_000;

/** Workers that serve one team. */
export interface Threads {
  readonly team: number;
  /** Ends the Workers; to be called after `stop_team`. */
  terminate(): void;
}

/**
 * Starts `count` Workers and waits until they run.
 *
 * @param onFailure Called once when a Worker dies later on.
 * @throws {BackendError} A Worker cannot start.
 */
export async function startThreads(
  count: number,
  start: ThreadStart,
  onFailure: (message: string) => void,
): Promise<Threads> {
  const url = new URL("./thread_worker.ts", import.meta.url);
  const workers: Worker[] = [];
  const terminate = () => workers.splice(0).forEach((worker) => worker.terminate());
  try {
    const ready = Array.from({ length: count }, () => {
      const worker = new Worker(url, { type: "module" });
      workers.push(worker);
      return started(worker, start, onFailure);
    });
    await Promise.all(ready);
  } catch (cause) {
    terminate();
    const message = `Cannot start ${count} threads: ${String(cause)}`;
    throw new BackendError(message, { fatal: true }, { cause });
  }
  return { team: start.team, terminate };
}

function started(
  worker: Worker,
  start: ThreadStart,
  onFailure: (message: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("a worker does not answer")), PATIENCE);
    const fail = (message: string) => {
      clearTimeout(timer);
      reject(new Error(message)); // of no effect once it was ready
      onFailure(message);
    };
    worker.onmessage = ({ data }: MessageEvent<ThreadAnswer>) => {
      if (data.type === "failed") return fail(data.message);
      clearTimeout(timer);
      resolve();
    };
    worker.onerror = (event) => {
      event.preventDefault();
      fail(event.message);
    };
    worker.postMessage(start);
  });
}
