/**
 * Measures what pruned attention costs in truth: every so many pruned steps, one of their tokens runs
 * densely as well. The dense run comes first and the step itself then writes the same KV again, so that
 * a shadow changes no answer.
 */
import { divergence } from "../../entropic/divergence.ts";
import { BackendError } from "../../errors.ts";
import { type Backend, DENSE } from "../backend.ts";
import type { ScheduledStep } from "../scheduling/scheduled_step.ts";
import type { Sequence } from "../sequence.ts";

/** A token that has run densely and is about to run pruned. */
export interface Shadow {
  readonly sequence: Sequence;
  /** Its row of logits in the step. */
  readonly row: number;
  /** Its dense logits, shape [vocabularySize]. */
  readonly dense: Float32Array;
}

export class ShadowSteps {
  readonly #every: number;
  readonly #now: () => number;
  #sinceLast = 0;
  /** Sequence of the latest one; the next is that with the next higher id. */
  #lastId = 0;
  #milliseconds = 0;

  /** @param every Pruned steps from one to the next; 0 for none. @param now Milliseconds. */
  constructor(every: number, now: () => number) {
    this.#every = every;
    this.#now = now;
  }

  /** Seconds spent on them. */
  get seconds(): number {
    return this.#milliseconds / 1000;
  }

  /**
   * Runs a shadow of a token of this step, if it is time. To be called before the step's `forward`.
   *
   * @throws {BackendError} The machine is lost. A failure that it survives costs the measurement only.
   */
  async run(
    step: ScheduledStep,
    backend: Backend,
    signal: AbortSignal,
  ): Promise<Shadow | undefined> {
    const index = this.#choose(step);
    const entry = step.entries[index], input = step.batch[index];
    if (entry === undefined || input === undefined) return undefined;
    this.#lastId = entry.sequence.id;
    const start = this.#now();
    try {
      await backend.forward([{ ...input, attention: DENSE }], signal);
      return { sequence: entry.sequence, row: entry.firstRow, dense: await backend.logits(0) };
    } catch (error) {
      if (!(error instanceof BackendError) || error.fatal) throw error;
      return undefined;
    } finally {
      this.#milliseconds += this.#now() - start;
    }
  }

  /** Index of the entry whose turn it is; -1 where it is no time. */
  #choose({ batch, entries }: ScheduledStep): number {
    const ids = entries.map(({ sequence, count, rows }, i) =>
      batch[i]?.attention.kind !== "dense" && count === 1 && rows === 1 ? sequence.id : Infinity
    );
    const lowest = Math.min(...ids);
    if (this.#every === 0 || lowest === Infinity || ++this.#sinceLast < this.#every) return -1;
    this.#sinceLast = 0;
    const next = Math.min(...ids.filter((id) => id > this.#lastId));
    return ids.indexOf(next < Infinity ? next : lowest);
  }
}

/** What a shadow found. */
export interface Measurement {
  readonly sequence: Sequence;
  /** KL(dense || pruned); NaN where a row is no distribution. */
  readonly nats: number;
}

/** To be called right after the step's `forward`. */
export async function measure(shadow: Shadow, backend: Backend): Promise<Measurement> {
  const { sequence, row, dense } = shadow;
  return { sequence, nats: divergence(dense, await backend.logits(row)) };
}
