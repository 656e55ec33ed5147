/**
 * What changes a sequence's logits before any token is left out, in llama.cpp's order: logit_bias and
 * bans, then the repetition penalty (arXiv 1909.05858) over all tokens seen, then the presence and
 * frequency penalties over those generated.
 */
import type { TokenLogits } from "../backend.ts";
import type { SequenceRequest } from "../engine.ts";

const NOTHING_SEEN: ReadonlyMap<number, number> = new Map();
const NO_TOKENS: ReadonlySet<number> = new Set();

export class LogitAdjuster {
  readonly #repetition: number;
  readonly #presence: number;
  readonly #frequency: number;
  readonly #penalizes: boolean;
  readonly #bias: ReadonlyMap<number, number>;
  readonly #banned: ReadonlySet<number>;
  readonly #minTokens: number;
  /** Times that each token seen was generated; 0 for those of the prompt only. */
  readonly #seen = new Map<number, number>();
  #generated = 0;

  /** @param stops Tokens that end the sequence, banned until `minTokens` are generated. */
  constructor(request: SequenceRequest, stops: ReadonlySet<number>) {
    const { sampling } = request;
    this.#repetition = sampling.repetitionPenalty ?? 1;
    this.#presence = sampling.presencePenalty ?? 0;
    this.#frequency = sampling.frequencyPenalty ?? 0;
    this.#penalizes = this.#repetition !== 1 || this.#presence !== 0 || this.#frequency !== 0;
    this.#bias = new Map(sampling.logitBias ?? []);
    this.#minTokens = request.minTokens ?? 0;
    this.#banned = stops;
    if (this.#repetition !== 1) {
      for (let i = 0; i < request.prompt.length; i++) {
        this.#seen.set(request.prompt[i] as number, 0);
      }
    }
  }

  /** Whether it leaves the logits of the next token as they are. */
  get neutral(): boolean {
    return this.#generated >= this.neutralFrom;
  }

  /** Index of the generated token from which on it is sure to leave logits as they are. */
  get neutralFrom(): number {
    if (this.#bias.size > 0 || this.#penalizes) return Infinity;
    return this.#banned.size > 0 ? this.#minTokens : 0;
  }

  /** Counts a generated token. */
  observe(token: number): void {
    this.#generated++;
    if (this.#penalizes) this.#seen.set(token, (this.#seen.get(token) ?? 0) + 1);
  }

  /** Whether a token outside `known` may get a higher logit than the model gave it. */
  mayRaiseOutside(known: ArrayLike<number>): boolean {
    if (this.#repetition < 1 || this.#presence < 0 || this.#frequency < 0) return true;
    for (const [token, bias] of this.#bias) {
      if (bias > 0 && Array.prototype.indexOf.call(known, token) < 0) return true;
    }
    return false;
  }

  /** The logit of a token as the sampler is to see it. */
  adjust(token: number, logit: number): number {
    if (this.#bans && this.#banned.has(token)) return -Infinity;
    const biased = logit + (this.#bias.get(token) ?? 0);
    const count = this.#penalizes ? this.#seen.get(token) : undefined;
    if (count === undefined) return biased;
    const scaled = biased > 0 ? biased / this.#repetition : biased * this.#repetition;
    return count === 0 ? scaled : scaled - this.#presence - count * this.#frequency;
  }

  /** The tokens whose logits it may change; shape [n], each once. */
  touched(): Uint32Array {
    const seen = this.#penalizes ? this.#seen : NOTHING_SEEN,
      banned = this.#bans ? this.#banned : NO_TOKENS;
    const ids = new Uint32Array(seen.size + this.#bias.size + banned.size);
    let count = 0;
    // A prompt may be long, so what was seen goes into no further set.
    for (const token of seen.keys()) ids[count++] = token;
    for (const token of new Set([...this.#bias.keys(), ...banned])) {
      if (!seen.has(token)) ids[count++] = token;
    }
    return ids.subarray(0, count);
  }

  /** Some logits of a row as the sampler is to see them. */
  adjustSome({ ids, logits }: TokenLogits): TokenLogits {
    return { ids, logits: logits.map((logit, i) => this.adjust(ids[i] as number, logit)) };
  }

  /** A row of logits as the sampler is to see it; shape [vocabularySize], a new array. */
  adjustAll(logits: Float32Array): Float32Array {
    const adjusted = logits.slice();
    for (const token of this.touched()) {
      adjusted[token] = this.adjust(token, logits[token] as number);
    }
    return adjusted;
  }

  get #bans(): boolean {
    return this.#generated < this.#minTokens && this.#banned.size > 0;
  }
}
