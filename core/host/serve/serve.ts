/** Serves a Hono app on whichever runtime this is, and stops without breaking answers off. */
import { listenOnBun } from "./bun.ts";
import type { Address, Fetch, Listen, Listener } from "./listener.ts";
import { listenOnNode } from "./node.ts";

export interface ServeOptions {
  /** Default 8000; 0 lets the system choose. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly hostname?: string;
  /** Stops the server as `stop` does. */
  readonly signal?: AbortSignal;
  /** How long running answers may take after `stop` before they are cut. Default 10. */
  readonly shutdownSeconds?: number;
  /**
   * Ends what still runs at the deadline, for example by disposing of the engine, so that streams
   * end with an error event. They have a second for that before their connections are cut.
   */
  readonly onDeadline?: () => Promise<void> | void;
}

export interface RunningServer {
  readonly url: string;
  readonly port: number;
  /** Takes no more connections, lets answers finish until the deadline, cuts the rest. */
  stop(): Promise<void>;
  /** Resolves when the server has stopped. */
  readonly stopped: Promise<void>;
}

/** Seconds that streams have to say goodbye after `onDeadline`. */
const FAREWELL_SECONDS = 1;

/**
 * @throws {Error} The address cannot be bound; says why and what to do.
 */
export async function serve(
  app: { readonly fetch: Fetch },
  options: ServeOptions = {},
): Promise<RunningServer> {
  const address = { hostname: options.hostname ?? "127.0.0.1", port: options.port ?? 8000 };
  const listener = await bind(pickListen(), (request) => app.fetch(request), address);
  let resolveStopped = () => {};
  const stopped = new Promise<void>((resolve) => resolveStopped = resolve);
  let stopping: Promise<void> | undefined;
  const stop = () => stopping ??= shutDown(listener, options).then(resolveStopped);
  if (options.signal?.aborted) await stop();
  else options.signal?.addEventListener("abort", () => void stop(), { once: true });
  return { url: showUrl(address.hostname, listener.port), port: listener.port, stop, stopped };
}

function pickListen(): Listen {
  return "Bun" in globalThis ? listenOnBun : listenOnNode;
}

async function bind(listen: Listen, fetch: Fetch, address: Address): Promise<Listener> {
  try {
    return await listen(fetch, address);
  } catch (cause) {
    const where = `${address.hostname}:${address.port}`;
    throw new Error(`Cannot listen on ${where}: ${explain(cause)}`, { cause });
  }
}

function explain(cause: unknown): string {
  const { code, name, message } = cause as { code?: string; name?: string; message?: string };
  if (code === "EADDRINUSE" || name === "AddrInUse") {
    return "the port is in use; choose another, or 0 for any free one";
  }
  if (code === "EACCES" || name === "PermissionDenied") {
    return "it is not permitted; ports from 1024 up usually are";
  }
  if (code === "EADDRNOTAVAIL" || name === "AddrNotAvailable") {
    return "this machine has no such address";
  }
  return message ?? String(cause);
}

async function shutDown(listener: Listener, options: ServeOptions): Promise<void> {
  const drained = listener.drain();
  if (await within(drained, options.shutdownSeconds ?? 10)) return;
  await options.onDeadline?.();
  if (options.onDeadline !== undefined && await within(drained, FAREWELL_SECONDS)) return;
  await listener.cut();
}

/** @returns Whether the promise settled in time. */
async function within(promise: Promise<void>, seconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), 1000 * seconds);
  });
  const settled = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return settled;
}

function showUrl(hostname: string, port: number): string {
  const wildcard = hostname === "0.0.0.0" || hostname === "::";
  const host = wildcard ? "localhost" : hostname.includes(":") ? `[${hostname}]` : hostname;
  return `http://${host}:${port}`;
}
