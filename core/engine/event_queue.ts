/**
 * The bounded buffer between the engine and the reader of one sequence. It fills while the reader is
 * slow; the engine then pauses the sequence until half of it has been read.
 */
import type { SequenceEvent } from "./engine.ts";

type Result = IteratorResult<SequenceEvent, undefined>;
interface Reader {
  resolve(result: Result): void;
  reject(error: unknown): void;
}

export interface EventQueueHooks {
  /** The reader has caught up after the queue was full. */
  drained(): void;
  /** The reader has left before the end. */
  abandoned(): void;
}

export class EventQueue implements AsyncIterableIterator<SequenceEvent, undefined> {
  readonly #capacity: number;
  readonly #hooks: EventQueueHooks;
  #events: SequenceEvent[] = [];
  /** Index in `#events` of the next one to be read; shifting an array is O(n). */
  #head = 0;
  #readers: Reader[] = [];
  #outcome: { readonly error?: unknown } | undefined;
  #stalled = false;

  /** @param capacity Events that may lie unread, >= 1; the last one of a stream always has room. */
  constructor(capacity: number, hooks: EventQueueHooks) {
    this.#capacity = capacity;
    this.#hooks = hooks;
  }

  /** Whether the writer has to wait for `drained`. */
  get stalled(): boolean {
    return this.#stalled;
  }

  push(event: SequenceEvent): void {
    if (this.#outcome !== undefined) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) reader.resolve({ done: false, value: event });
    else this.#events.push(event);
    if (this.#unread >= this.#capacity) this.#stalled = true;
  }

  /** The stream ends when what lies unread has been read. */
  end(): void {
    this.#close({});
  }

  /** The reader gets what lies unread, then the error. */
  fail(error: unknown): void {
    this.#close({ error });
  }

  next(): Promise<Result> {
    const event = this.#events[this.#head];
    if (event !== undefined) {
      this.#take();
      return Promise.resolve({ done: false, value: event });
    }
    if (this.#outcome === undefined) {
      return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
    }
    const { error } = this.#outcome;
    this.#outcome = {};
    return error === undefined
      ? Promise.resolve({ done: true, value: undefined })
      : Promise.reject(error);
  }

  return(): Promise<Result> {
    this.#events = [];
    this.#head = 0;
    if (this.#outcome === undefined) this.#hooks.abandoned();
    this.#close({});
    this.#outcome = {};
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get #unread(): number {
    return this.#events.length - this.#head;
  }

  #take(): void {
    this.#head++;
    if (this.#unread === 0) {
      this.#events = [];
      this.#head = 0;
    }
    if (this.#stalled && this.#unread <= this.#capacity >> 1) {
      this.#stalled = false;
      if (this.#outcome === undefined) this.#hooks.drained();
    }
  }

  #close(outcome: { readonly error?: unknown }): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#stalled = false;
    for (const reader of this.#readers.splice(0)) {
      const { error } = this.#outcome;
      this.#outcome = {};
      if (error === undefined) reader.resolve({ done: true, value: undefined });
      else reader.reject(error);
    }
  }
}
