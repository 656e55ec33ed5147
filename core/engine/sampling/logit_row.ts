/** A row of the latest `forward`: its statistics at once, the whole row when something needs it. */
import { BackendError } from "../../errors.ts";
import type { Backend, LogitStats, Uncertainty } from "../backend.ts";
import type { TokenLogprob } from "../engine.ts";

export class LogitRow {
  readonly stats: LogitStats;
  readonly #backend: Backend;
  readonly #index: number;
  #logits: Float32Array | undefined;

  constructor(stats: LogitStats, backend: Backend, index: number) {
    this.stats = stats;
    this.#backend = backend;
    this.#index = index;
  }

  /** @throws {BackendError} The row is no distribution: a NaN, a +Infinity, nothing possible. */
  check(): void {
    const { logZ, entropy } = this.stats;
    if (Number.isFinite(logZ) && Number.isFinite(entropy)) return;
    throw new BackendError(`Cannot use the logits of this sequence: their log Z is ${logZ}`, {
      fatal: false,
    });
  }

  /** Every logit, shape [vocabularySize]; not to be changed. */
  async logits(): Promise<Float32Array> {
    return this.#logits ??= await this.#backend.logits(this.#index);
  }

  /** How uncertain the row is at a temperature above 0. */
  tempered(temperature: number): Promise<Uncertainty> {
    return this.#backend.tempered(this.#index, temperature);
  }

  /** Natural log of the token's probability under the raw model, exact for every token. */
  async logprob(token: number): Promise<number> {
    const { topIds, topLogits, logZ } = this.stats;
    const rank = topIds.indexOf(token);
    const logit = rank < 0 ? (await this.logits())[token] : topLogits[rank];
    return (logit as number) - logZ;
  }

  /** The `count` most likely tokens, best first. */
  top(count: number): TokenLogprob[] {
    const { topIds, topLogits, logZ } = this.stats;
    return Array.from(topIds.subarray(0, count), (token, rank) => ({
      token,
      logprob: (topLogits[rank] as number) - logZ,
    }));
  }
}
