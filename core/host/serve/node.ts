/**
 * Runtime adapter: `node:http`, for Node and for Deno, through `@hono/node-server`, which is loaded
 * only there. `Deno.serve` (2.9) would do, but once it has read a body it does not see the client
 * leave before the answer begins: nobody would stop an answer that comes as a whole.
 */
import type { Server } from "node:http";
import type { Address, Fetch, Listener } from "./listener.ts";

export async function listenOnNode(fetch: Fetch, address: Address): Promise<Listener> {
  const { createAdaptorServer } = await import("@hono/node-server");
  const server = createAdaptorServer({ fetch: (request) => fetch(request) }) as Server;
  // Node cuts requests that take longer than 5 minutes to arrive, not answers: nothing to change.
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.hostname, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const closed = new Promise<void>((resolve) => server.once("close", () => resolve()));
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : address.port,
    drain() {
      server.close();
      server.closeIdleConnections();
      return closed;
    },
    cut() {
      server.close();
      server.closeAllConnections();
      return closed;
    },
  };
}
