/**
 * What `RemoteEngine` and `hostEngine` say to each other, in messages that structured clone can copy.
 * Events flow on credit: the host may send as many as the client has granted, so that a slow reader
 * pauses its sequence across the port as well.
 */
import type { EngineInfo, EngineStats, SequenceEvent, SequenceRequest } from "../engine.ts";
import type { EncodedError } from "./error_codec.ts";

/** From the client. `stream` and `call` are numbers of its choice, none used twice. */
export type ClientMessage =
  /** `credit`: events that may be sent before more is granted. */
  | {
    readonly type: "submit";
    readonly stream: number;
    readonly request: SequenceRequest;
    readonly credit: number;
  }
  | { readonly type: "grant"; readonly stream: number; readonly credit: number }
  | { readonly type: "abort"; readonly stream: number }
  | { readonly type: "stats"; readonly call: number }
  | { readonly type: "dispose"; readonly call: number };

/** From the host. */
export type HostMessage =
  /** The first message, and again whenever the engine has a new backend. */
  | { readonly type: "ready"; readonly info: EngineInfo }
  /** There is no engine and will be none. */
  | { readonly type: "unavailable"; readonly error: EncodedError }
  /** For people to read; may come at any time. */
  | { readonly type: "log"; readonly line: string }
  | { readonly type: "accepted"; readonly stream: number }
  | { readonly type: "refused"; readonly stream: number; readonly error: EncodedError }
  | { readonly type: "events"; readonly events: readonly (readonly [number, SequenceEvent])[] }
  | { readonly type: "failed"; readonly stream: number; readonly error: EncodedError }
  | { readonly type: "stats"; readonly call: number; readonly stats: EngineStats }
  /** Instead of stats. */
  | { readonly type: "down"; readonly call: number; readonly error: EncodedError }
  | { readonly type: "disposed"; readonly call: number };

/** One end of a port. */
export interface Channel<Sent, Received> {
  send(message: Sent): void;
  /** Called once, before anything is sent. */
  receive(listener: (message: Received) => void): void;
}

/** A client's end: it also learns when the other end has died. */
export interface EngineLink extends Channel<ClientMessage, HostMessage> {
  /** The listener may be called more than once. */
  onFailure(listener: (reason: unknown) => void): void;
  /** Ends the other side, whatever it is doing. */
  close(): void;
}

/** What `Worker`, `MessagePort` and a worker's global scope have in common. */
interface Port {
  postMessage(message: unknown): void;
  addEventListener(type: string, listener: (event: Event) => void): void;
}

/** The end of a channel at a `MessagePort` or a worker's global scope. */
export function channelOf<Sent, Received>(
  port: Port & { start?(): void },
): Channel<Sent, Received> {
  return {
    send: (message) => port.postMessage(message),
    receive(listener) {
      port.addEventListener("message", (event) => listener((event as MessageEvent).data));
      port.start?.();
    },
  };
}

/** A link to the engine host in a Web Worker. Closing it terminates the Worker. */
export function linkToWorker(worker: Port & { terminate(): void }): EngineLink {
  return {
    ...channelOf<ClientMessage, HostMessage>(worker),
    onFailure(listener) {
      for (const type of ["error", "messageerror", "close"]) {
        worker.addEventListener(type, (event) => {
          // Unhandled, an error in a Worker ends the whole process under Deno.
          event.preventDefault();
          listener((event as ErrorEvent).message ?? type);
        });
      }
    },
    close: () => worker.terminate(),
  };
}
