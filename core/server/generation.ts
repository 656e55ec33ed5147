/** From requests to pieces of text: submits, follows and, when nobody listens, aborts. */
import type { Engine, SequenceRequest, SequenceStream } from "../engine/engine.ts";
import type { SequenceEvent } from "../engine/engine.ts";
import type { Choice, ChoiceDelta } from "./choice.ts";
import { merge } from "./merge.ts";

/** Told of every event as it arrives, for metrics. */
export type EventObserver = (index: number, event: SequenceEvent) => void;

/** The running sequences of one HTTP request. */
export class Generation {
  #streams: readonly SequenceStream[];

  private constructor(streams: readonly SequenceStream[]) {
    this.#streams = streams;
  }

  /**
   * Submits all the requests, or none: one that is refused takes the others with it.
   *
   * @param signal Aborts every sequence, in whichever phase it is.
   * @throws {RequestError} A request can never be served.
   * @throws {OverloadedError} The queue is full.
   */
  static async start(
    engine: Engine,
    requests: readonly SequenceRequest[],
    signal: AbortSignal,
  ): Promise<Generation> {
    const submissions = requests.map((request) => engine.submit(request));
    const settled = await Promise.allSettled(submissions);
    const streams = settled.flatMap((one) => one.status === "fulfilled" ? [one.value] : []);
    const generation = new Generation(streams);
    const refused = settled.find((one) => one.status === "rejected");
    if (refused !== undefined) {
      generation.abort();
      throw refused.reason;
    }
    if (signal.aborted) generation.abort();
    else signal.addEventListener("abort", () => generation.abort(), { once: true });
    return generation;
  }

  /** Frees everything that the sequences hold. Harmless at any time and more than once. */
  abort(): void {
    for (const stream of this.#streams) stream.abort();
  }

  /** The choices' pieces in order of arrival. A caller that stops reading pauses the sequences. */
  async *follow(
    choices: readonly Choice[],
    observe: EventObserver,
  ): AsyncGenerator<ChoiceDelta, void, void> {
    try {
      for await (const [index, event] of merge(this.#streams)) {
        observe(index, event);
        const choice = choices[index];
        if (choice === undefined) continue;
        const delta = choice.take(event);
        if (delta !== undefined) yield delta;
        if (choice.stopped) this.#streams[index]?.abort();
      }
    } finally {
      this.abort();
    }
  }
}
