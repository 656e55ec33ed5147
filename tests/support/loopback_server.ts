/** An HTTP server on the loopback interface, for tests of clients. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface LoopbackServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** Requests so far, oldest first. */
  readonly requests: readonly IncomingMessage[];
}

/** Starts a server that answers every request with `handle`; its number counts from 0. */
export async function loopbackServer(
  handle: (request: IncomingMessage, response: ServerResponse, number: number) => void,
): Promise<LoopbackServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    handle(request, response, requests.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Answers as a file server does, with ranges. `cutAfter` breaks the connection after so many bytes.
 */
export function serveFile(
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Uint8Array,
  { etag, cutAfter }: { readonly etag?: string; readonly cutAfter?: number } = {},
): void {
  const [, from] = request.headers.range?.match(/^bytes=(\d+)-$/) ?? [];
  const isFresh = request.headers["if-range"] === undefined || request.headers["if-range"] === etag;
  const start = from !== undefined && isFresh ? Number(from) : 0;
  if (start >= bytes.length) {
    response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
    return;
  }
  response.writeHead(start > 0 ? 206 : 200, {
    "content-length": bytes.length - start,
    ...(etag === undefined ? {} : { etag }),
    ...(start > 0 ? { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` } : {}),
  });
  if (cutAfter === undefined) response.end(bytes.subarray(start));
  else response.write(bytes.subarray(start, start + cutAfter), () => response.destroy());
}
