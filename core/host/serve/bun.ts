/** Runtime adapter: `Bun.serve`. Names Bun's API structurally, so that every runtime can load it. */
import type { Address, Fetch, Listener } from "./listener.ts";

interface BunServe {
  serve(options: Address & { idleTimeout: number; fetch: Fetch }): {
    port: number;
    stop(closeActiveConnections?: boolean): Promise<void>;
  };
}

// deno-lint-ignore require-await -- so that a port in use rejects
export async function listenOnBun(fetch: Fetch, address: Address): Promise<Listener> {
  const { Bun } = globalThis as unknown as { Bun: BunServe };
  // Bun cuts connections that were silent for 10 s, and a whole answer may take longer to come.
  const server = Bun.serve({ ...address, idleTimeout: 0, fetch: (request) => fetch(request) });
  return {
    port: server.port,
    drain: () => server.stop(),
    cut: () => server.stop(true),
  };
}
