/**
 * Server-Sent Events (WHATWG HTML, section 9.2) from an async generator. Data is always one line of
 * JSON, so no text of a model can forge a field or an event.
 */
import { toApiError } from "./api_error.ts";

export type CloseReason = "done" | "error" | "disconnect";

export interface EventStreamOptions {
  /** A comment is sent after this many seconds without an event; 0 sends none. */
  readonly keepAliveSeconds: number;
  /** The client's; some runtimes tell of a disconnect only here, some only by `cancel`. */
  readonly signal: AbortSignal;
  /** Stops whatever feeds the generator: the client is gone. May be called more than once. */
  readonly abort: () => void;
  /** Called once, when the stream is over for whatever reason. */
  readonly onClose: (reason: CloseReason, error?: unknown) => void;
}

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // `no-transform` keeps runtimes and proxies from compressing, which would hold events back.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

const encoder = new TextEncoder();
const DONE = encoder.encode("data: [DONE]\n\n");
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");

/**
 * Sends each value as an event and `[DONE]` at the end; an error becomes an event of its own before
 * it. The generator advances only when the client has taken what was sent, so a slow reader pauses
 * its own sequences and no others.
 */
export function eventStream(
  values: AsyncGenerator<unknown, void, void>,
  options: EventStreamOptions,
): Response {
  let open = true;
  let sentAt = performance.now();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const period = 1000 * options.keepAliveSeconds;

  const close = (reason: CloseReason, error?: unknown) => {
    if (!open) return;
    open = false;
    clearTimeout(timer);
    options.signal.removeEventListener("abort", disconnect);
    options.onClose(reason, error);
  };
  const leave = () => {
    close("disconnect");
    options.abort();
    values.return().catch(() => {});
  };
  let disconnect = leave;

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      disconnect = () => {
        leave();
        controller.close();
      };
      if (options.signal.aborted) return disconnect();
      options.signal.addEventListener("abort", disconnect, { once: true });
      if (period > 0) keepAlive(controller);
    },
    async pull(controller) {
      try {
        const { done, value } = await values.next();
        if (!open) return;
        if (!done) return send(controller, event(value));
        close("done");
      } catch (error) {
        if (!open) return;
        close("error", error);
        controller.enqueue(event(toApiError(error).toBody()));
      }
      controller.enqueue(DONE);
      controller.close();
    },
    cancel: leave,
  });

  function send(controller: ReadableStreamDefaultController<Uint8Array>, bytes: Uint8Array) {
    sentAt = performance.now();
    controller.enqueue(bytes);
  }

  function keepAlive(controller: ReadableStreamDefaultController<Uint8Array>) {
    const idle = performance.now() - sentAt;
    // A reader that has not taken the last event is slow, not idle: nothing is piled up for it.
    if (idle >= period && (controller.desiredSize ?? 0) > 0) send(controller, KEEP_ALIVE);
    const wait = idle >= period ? period : period - idle;
    timer = setTimeout(() => keepAlive(controller), wait);
  }

  return new Response(body, { headers: HEADERS });
}

function event(value: unknown): Uint8Array {
  return encoder.encode(`data: ${JSON.stringify(value)}\n\n`);
}
