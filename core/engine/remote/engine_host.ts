/** Serves an engine to the other end of a channel: the Worker's side of `RemoteEngine`. */
import type { Engine, EngineInfo, SequenceEvent, SequenceStream } from "../engine.ts";
import type { Channel, ClientMessage, HostMessage } from "./engine_protocol.ts";
import { encodeError } from "./error_codec.ts";
import { yieldToEventLoop } from "../yield_to_event_loop.ts";

/**
 * Opens an engine, announces it, and serves it until the client disposes of it.
 *
 * @param open Is given what takes lines for people on the other side.
 */
export async function hostEngine(
  channel: Channel<HostMessage, ClientMessage>,
  open: (log: (line: string) => void) => Promise<Engine>,
): Promise<void> {
  const early: ClientMessage[] = [];
  let handle = (message: ClientMessage) => void early.push(message);
  channel.receive((message) => handle(message));
  try {
    const engine = await open((line) => channel.send({ type: "log", line }));
    const host = new EngineHost(channel, engine);
    handle = (message) => void host.handle(message);
    for (const message of early) handle(message);
  } catch (error) {
    channel.send({ type: "unavailable", error: encodeError(error) });
  }
}

/** A stream on its way to the client, and how much of it the client wants. */
interface Outflow {
  credit: number;
  /** Wakes the sender. */
  granted: () => void;
  /** Missing while the engine has not accepted it. */
  stream?: SequenceStream;
  /** Resolves when all has been sent. */
  sent?: Promise<void>;
  aborted: boolean;
}

class EngineHost {
  readonly #channel: Channel<HostMessage, ClientMessage>;
  readonly #engine: Engine;
  readonly #outflows = new Map<number, Outflow>();
  #announced: EngineInfo | undefined;
  #outbox: (readonly [number, SequenceEvent])[] = [];

  constructor(channel: Channel<HostMessage, ClientMessage>, engine: Engine) {
    this.#channel = channel;
    this.#engine = engine;
    this.#announce();
  }

  async handle(message: ClientMessage): Promise<void> {
    switch (message.type) {
      case "submit":
        return await this.#submit(message);
      case "grant":
        return this.#grant(this.#outflows.get(message.stream), message.credit);
      case "abort":
        return this.#abort(this.#outflows.get(message.stream));
      case "stats":
        return await this.#report(message.call);
      case "dispose":
        for (const outflow of this.#outflows.values()) this.#abort(outflow);
        await this.#engine.dispose();
        await Promise.all([...this.#outflows.values()].map(({ sent }) => sent));
        this.#flush();
        return this.#channel.send({ type: "disposed", call: message.call });
    }
  }

  async #submit({ stream, request, credit }: ClientMessage & { type: "submit" }): Promise<void> {
    const outflow: Outflow = { credit, granted: () => {}, aborted: false };
    this.#outflows.set(stream, outflow);
    try {
      outflow.stream = await this.#engine.submit(request);
    } catch (error) {
      this.#outflows.delete(stream);
      this.#channel.send({ type: "refused", stream, error: encodeError(error) });
      return;
    }
    this.#announce();
    this.#channel.send({ type: "accepted", stream });
    if (outflow.aborted) outflow.stream.abort();
    await (outflow.sent = this.#pump(stream, outflow, outflow.stream));
  }

  async #pump(id: number, outflow: Outflow, stream: SequenceStream): Promise<void> {
    try {
      for await (const event of stream) {
        while (outflow.credit === 0 && event.type !== "end") {
          await new Promise<void>((resolve) => outflow.granted = resolve);
        }
        outflow.credit--;
        this.#post(id, event);
      }
    } catch (error) {
      this.#flush();
      this.#channel.send({ type: "failed", stream: id, error: encodeError(error) });
    } finally {
      this.#outflows.delete(id);
    }
  }

  /** Sends the events of a step together. */
  #post(id: number, event: SequenceEvent): void {
    if (this.#outbox.push([id, event]) === 1) void yieldToEventLoop().then(() => this.#flush());
  }

  #flush(): void {
    if (this.#outbox.length === 0) return;
    this.#channel.send({ type: "events", events: this.#outbox });
    this.#outbox = [];
  }

  async #report(call: number): Promise<void> {
    try {
      const stats = await this.#engine.stats();
      this.#announce();
      this.#channel.send({ type: "stats", call, stats });
    } catch (error) {
      this.#channel.send({ type: "down", call, error: encodeError(error) });
    }
  }

  #grant(outflow: Outflow | undefined, credit: number): void {
    if (outflow === undefined) return;
    outflow.credit += credit;
    outflow.granted();
  }

  #abort(outflow: Outflow | undefined): void {
    if (outflow === undefined) return;
    outflow.aborted = true;
    outflow.stream?.abort();
    // What is left is bounded by the engine's own buffer; the end event must come through.
    this.#grant(outflow, Infinity);
  }

  /** Tells what runs, where that is news: after a failure it may be another backend. */
  #announce(): void {
    const { info } = this.#engine;
    if (info === this.#announced) return;
    this.#announced = info;
    this.#channel.send({ type: "ready", info });
  }
}
