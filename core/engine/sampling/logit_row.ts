/** A row of the latest `forward`: its statistics at once, the whole row when something needs it. */
import { BackendError, RequestError } from "../../errors.ts";
import type { Backend, LogitStats, TokenLogits, Uncertainty } from "../backend.ts";
import type { SamplingParams, TokenLogprob } from "../engine.ts";
import { drawOf } from "./plain_draw.ts";

const NONE = new Float32Array();

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

  /** Logits of some tokens, as the model gave them. */
  async logitsOf(ids: Uint32Array): Promise<TokenLogits> {
    if (ids.length === 0) return { ids, logits: NONE };
    const row = this.#logits;
    if (row) return { ids, logits: Float32Array.from(ids, (id) => row[id] as number) };
    return { ids, logits: await this.#backend.logitsOf(this.#index, ids) };
  }

  /**
   * A token out of all of them, where the statistics do not settle it.
   *
   * @param u Random number in [0, 1).
   * @throws {RequestError} No token is left to choose from.
   */
  async draw(sampling: SamplingParams, overrides: TokenLogits, u: number): Promise<number> {
    const token = await this.#backend.draw(this.#index, { ...drawOf(sampling, u), overrides });
    if (token !== undefined) return token;
    throw new RequestError("Cannot sample a token: logit_bias and min_tokens ban all of them", {
      param: "logit_bias",
    });
  }

  /** How uncertain the row is at a temperature above 0. */
  tempered(temperature: number): Promise<Uncertainty> {
    return this.#backend.tempered(this.#index, temperature);
  }

  /** Natural log of the token's probability under the raw model, exact for every token. */
  async logprob(token: number): Promise<number> {
    const { topIds, topLogits, logZ, drawn } = this.stats;
    if (drawn?.token === token) return drawn.logit - logZ;
    const rank = topIds.indexOf(token);
    if (rank >= 0) return (topLogits[rank] as number) - logZ;
    const { logits } = await this.logitsOf(Uint32Array.of(token));
    return (logits[0] as number) - logZ;
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
