/**
 * A thread of the core: a Worker that instantiates the module on the leader's memory and serves its
 * team until it is stopped. It answers `ready` once, and `failed` with a message if it traps.
 */
import { instantiate, startThread, type ThreadExports } from "./loader.ts";

/** What the leader sends to start a thread. */
export interface ThreadStart {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** Pointer to the team. */
  readonly team: number;
}

/** What a thread answers. */
export type ThreadAnswer = { readonly type: "ready" } | {
  readonly type: "failed";
  readonly message: string;
};

interface WorkerScope {
  onmessage: ((event: MessageEvent<ThreadStart>) => void) | null;
  postMessage(answer: ThreadAnswer): void;
}

const scope = globalThis as unknown as WorkerScope;

scope.onmessage = async ({ data: { module, memory, team } }) => {
  let exports: ThreadExports | undefined;
  try {
    exports = startThread(await instantiate(module, memory));
    scope.postMessage({ type: "ready" });
    exports.serve_team(team);
  } catch (error) {
    exports?.fail_team(team);
    scope.postMessage({ type: "failed", message: String(error) });
  }
};
