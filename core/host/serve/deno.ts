/** Runtime adapter: `Deno.serve`. Names Deno's API structurally, so that every runtime can load it. */
import type { Address, Fetch, Listener } from "./listener.ts";

interface DenoServe {
  serve(
    options: Address & { signal: AbortSignal; onListen: () => void },
    handler: (request: Request, info: Info) => Response | Promise<Response>,
  ): { addr: { port: number }; finished: Promise<void> };
}

interface Info {
  /** Settles with the last byte of the answer, or when the client is gone. */
  readonly completed: Promise<void>;
}

// deno-lint-ignore require-await -- so that a port in use rejects
export async function listenOnDeno(fetch: Fetch, address: Address): Promise<Listener> {
  const { Deno } = globalThis as unknown as { Deno: DenoServe };
  const running = new Set<Promise<void>>();
  const cutter = new AbortController();
  let draining = false;
  const server = Deno.serve(
    { ...address, signal: cutter.signal, onListen: () => {} },
    (request, { completed }) => {
      if (draining) return stopping();
      const over = completed.catch(() => {}).finally(() => running.delete(over));
      running.add(over);
      return fetch(request);
    },
  );
  const cut = async () => {
    cutter.abort();
    await server.finished;
  };
  return {
    port: server.addr.port,
    // `Deno.Server.shutdown` would do, but nothing can cut a server that is shutting down.
    async drain() {
      draining = true;
      await Promise.all(running);
      await cut();
    },
    cut,
  };
}

function stopping(): Response {
  return new Response(null, { status: 503, headers: { connection: "close" } });
}
