/**
 * An engine at the other end of a link, usually in a Worker, so that this thread stays responsive
 * while the model computes. When the other end dies, every stream fails and the next request opens a
 * new one.
 */
import { BackendError } from "../../errors.ts";
import type {
  Engine,
  EngineInfo,
  EngineStats,
  SequenceEvent,
  SequenceRequest,
  SequenceStream,
} from "../engine.ts";
import type { ClientMessage, EngineLink, HostMessage } from "./engine_protocol.ts";
import { decodeError } from "./error_codec.ts";
import { EventQueue } from "../event_queue.ts";

export interface RemoteEngineOptions {
  /** Events of a sequence that may lie unread on this side; 64. */
  readonly eventBuffer?: number;
  /** Whether a new host is opened for the next request after one has died; true. */
  readonly restart?: boolean;
  /** Takes lines for people, from the host. */
  readonly log?: (line: string) => void;
}

/**
 * Opens a link and waits until the engine behind it is ready.
 *
 * @param open Starts a host, for example a Worker that calls `hostEngine`; again after it has died.
 * @throws {Error} What kept the host from opening its engine.
 */
export async function connectEngine(
  open: () => EngineLink | Promise<EngineLink>,
  options: RemoteEngineOptions = {},
): Promise<Engine> {
  return new RemoteEngine(open, options, await Connection.open(open, options));
}

class RemoteEngine implements Engine {
  readonly #open: () => EngineLink | Promise<EngineLink>;
  readonly #options: RemoteEngineOptions;
  #connection: Connection;
  #reopening: Promise<Connection> | undefined;
  #disposed = false;

  constructor(
    open: () => EngineLink | Promise<EngineLink>,
    options: RemoteEngineOptions,
    connection: Connection,
  ) {
    this.#open = open;
    this.#options = options;
    this.#connection = connection;
  }

  get info(): EngineInfo {
    return this.#connection.info;
  }

  async submit(request: SequenceRequest): Promise<SequenceStream> {
    return await (await this.#alive()).submit(request);
  }

  async stats(): Promise<EngineStats> {
    return await (await this.#alive()).stats();
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#reopening?.catch(() => {});
    await this.#connection.dispose();
  }

  /** The connection, a new one if the last has died. */
  async #alive(): Promise<Connection> {
    if (this.#disposed) {
      throw new BackendError("Cannot use the engine: it is disposed", { fatal: true });
    }
    const { failure } = this.#connection;
    if (failure === undefined) return this.#connection;
    if (this.#options.restart === false) throw failure;
    this.#reopening ??= Connection.open(this.#open, this.#options).finally(() => {
      this.#reopening = undefined;
    });
    return this.#connection = await this.#reopening;
  }
}

interface Call<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** One host, from its start to its death. */
class Connection {
  readonly #link: EngineLink;
  readonly #eventBuffer: number;
  #info: EngineInfo;
  #failure: BackendError | undefined;
  #lastNumber = 0;
  readonly #streams = new Map<number, EventQueue>();
  readonly #submits = new Map<number, Call<void>>();
  readonly #stats = new Map<number, Call<EngineStats>>();
  readonly #disposals = new Map<number, Call<void>>();

  static async open(
    open: () => EngineLink | Promise<EngineLink>,
    { eventBuffer = 64, log = () => {} }: RemoteEngineOptions,
  ): Promise<Connection> {
    const link = await open();
    return await new Promise((resolve, reject) => {
      let connection: Connection | undefined;
      link.onFailure((reason) => {
        const error = deathBy(reason);
        if (connection === undefined) reject(error);
        else connection.#fail(error);
      });
      link.receive((message) => {
        if (message.type === "log") return log(message.line);
        if (connection !== undefined) return connection.#handle(message);
        if (message.type === "ready") {
          resolve(connection = new Connection(link, eventBuffer, message.info));
        } else if (message.type === "unavailable") {
          link.close();
          reject(decodeError(message.error));
        }
      });
    });
  }

  private constructor(link: EngineLink, eventBuffer: number, info: EngineInfo) {
    this.#link = link;
    this.#eventBuffer = eventBuffer;
    this.#info = info;
  }

  get info(): EngineInfo {
    return this.#info;
  }

  /** Why it is dead, once it is. */
  get failure(): BackendError | undefined {
    return this.#failure;
  }

  async submit(request: SequenceRequest): Promise<SequenceStream> {
    const id = ++this.#lastNumber;
    const abort = () => this.#send({ type: "abort", stream: id });
    const queue = new EventQueue(Infinity, { drained: () => {}, abandoned: abort });
    const prompt = Uint32Array.from(request.prompt);
    const credit = this.#eventBuffer;
    const message = {
      type: "submit",
      stream: id,
      request: { ...request, prompt },
      credit,
    } as const;
    const accepted = this.#call(this.#submits, id, message);
    this.#streams.set(id, queue);
    try {
      await accepted;
    } catch (error) {
      this.#streams.delete(id);
      throw error;
    }
    const events = this.#granting(id, queue);
    return { id, abort, [Symbol.asyncIterator]: () => events };
  }

  async stats(): Promise<EngineStats> {
    const call = ++this.#lastNumber;
    return await this.#call(this.#stats, call, { type: "stats", call });
  }

  async dispose(): Promise<void> {
    if (this.#failure !== undefined) return;
    const call = ++this.#lastNumber;
    // A host that dies first has nothing left to dispose of.
    await this.#call(this.#disposals, call, { type: "dispose", call }).catch(() => {});
    this.#fail(new BackendError("Cannot use the engine: it is disposed", { fatal: true }));
  }

  /** Sends a message and waits for its answer, or for the death of the host. */
  #call<T>(calls: Map<number, Call<T>>, number: number, message: ClientMessage): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#link.send(message);
      calls.set(number, { resolve, reject });
    });
  }

  /** Hands out a queue's events, and grants the host as many again as have been read. */
  #granting(stream: number, queue: EventQueue): AsyncIterator<SequenceEvent, undefined> {
    const batch = Math.ceil(this.#eventBuffer / 2);
    let read = 0;
    return {
      next: async () => {
        const result = await queue.next();
        if (!result.done && ++read === batch) {
          this.#send({ type: "grant", stream, credit: batch });
          read = 0;
        }
        return result;
      },
      return: () => queue.return(),
    };
  }

  #send(message: ClientMessage): void {
    if (this.#failure === undefined) this.#link.send(message);
  }

  #handle(message: HostMessage): void {
    switch (message.type) {
      case "ready":
        this.#info = message.info;
        return;
      case "accepted":
        return take(this.#submits, message.stream)?.resolve();
      case "refused":
        return take(this.#submits, message.stream)?.reject(decodeError(message.error));
      case "events":
        for (const [stream, event] of message.events) this.#deliver(stream, event);
        return;
      case "failed":
        return take(this.#streams, message.stream)?.fail(decodeError(message.error));
      case "stats":
        return take(this.#stats, message.call)?.resolve(message.stats);
      case "down":
        return take(this.#stats, message.call)?.reject(decodeError(message.error));
      case "disposed":
        return take(this.#disposals, message.call)?.resolve();
      case "log":
      case "unavailable":
        return; // seen to in `open`
    }
  }

  #deliver(stream: number, event: SequenceEvent): void {
    const queue = this.#streams.get(stream);
    queue?.push(event);
    if (event.type !== "end") return;
    queue?.end();
    this.#streams.delete(stream);
  }

  #fail(error: BackendError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#link.close();
    for (const calls of [this.#submits, this.#stats, this.#disposals]) {
      for (const { reject } of calls.values()) reject(error);
      calls.clear();
    }
    for (const queue of this.#streams.values()) queue.fail(error);
    this.#streams.clear();
  }
}

function take<T>(map: Map<number, T>, key: number): T | undefined {
  const value = map.get(key);
  map.delete(key);
  return value;
}

function deathBy(reason: unknown): BackendError {
  const why = reason instanceof Error ? reason.message : String(reason);
  return new BackendError(`Cannot reach the engine: its host died (${why})`, { fatal: true });
}
