/** One request and its answer, from arrival to the last byte: for the access log and the metrics. */
import type { MiddlewareHandler } from "hono";
import { ApiError, toApiError } from "./api_error.ts";
import type { ServerMetrics } from "./metrics.ts";

/** One line of the access log. */
export interface AccessEntry {
  /** ISO 8601, of the request's arrival. */
  readonly time: string;
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  /** To the end of the answer, streams included. */
  readonly milliseconds: number;
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  /** Whether the client left before the end of its stream. */
  readonly disconnected?: true;
  readonly error?: string;
  /** Of errors whose text the client does not see. */
  readonly stack?: string;
}

export type AccessLogger = (entry: AccessEntry) => void;

/** What handlers know of the request that they answer. */
export class Exchange {
  /** On `performance.now()`'s clock. */
  readonly arrival: number = performance.now();
  /** Fires when the client leaves; under Deno also after success. */
  readonly signal: AbortSignal;
  promptTokens: number | undefined;
  completionTokens: number | undefined;
  disconnected = false;
  error: unknown;
  #streamed = false;
  #over = false;
  #report: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  /** Puts the end of the exchange off until `end` is called. */
  stream(): void {
    this.#streamed = true;
  }

  /** A stream is over. */
  end(): void {
    this.#over = true;
    this.#report?.();
  }

  /** Calls back once the answer is over: at once, unless it is a stream that still runs. */
  whenOver(report: () => void): void {
    if (this.#over || !this.#streamed) report();
    else this.#report = report;
  }
}

export interface ServerEnv {
  Variables: { exchange: Exchange; requestId: string };
}

/** Opens the exchange; reports it when it is over. @param route A label for the metrics. */
export function exchanges(
  route: string,
  metrics: ServerMetrics,
  logger: AccessLogger | undefined,
): MiddlewareHandler<ServerEnv> {
  return async function exchange(c, next) {
    const time = new Date().toISOString();
    const exchange = new Exchange(c.req.raw.signal);
    c.set("exchange", exchange);
    await next();
    const { method, path } = c.req;
    const { status } = c.res;
    exchange.error ??= c.error;
    exchange.whenOver(() => {
      const milliseconds = performance.now() - exchange.arrival;
      metrics.countRequest(route, status, milliseconds / 1000);
      const id = c.get("requestId");
      logger?.({ time, id, method, path, status, milliseconds, ...details(exchange) });
    });
  };
}

function details(exchange: Exchange) {
  const { promptTokens, completionTokens, disconnected, error } = exchange;
  return {
    ...(promptTokens !== undefined && { promptTokens }),
    ...(completionTokens !== undefined && { completionTokens }),
    ...(disconnected && { disconnected: true as const }),
    ...(error !== undefined && describe(error)),
  };
}

function describe(error: unknown): { readonly error: string; readonly stack?: string } {
  const answer = toApiError(error);
  if (answer.status !== 500) return { error: answer.message };
  const cause = answer instanceof ApiError && answer.cause !== undefined ? answer.cause : error;
  return cause instanceof Error
    ? { error: cause.message, ...(cause.stack !== undefined && { stack: cause.stack }) }
    : { error: String(cause) };
}
