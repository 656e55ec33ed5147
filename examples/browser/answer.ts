/// <reference lib="dom" />
// An answer on the page: each token in the colour of its entropy, and what they come to below.
import type { GeneratedToken } from "../../mod.ts";
import { make } from "./dom.ts";

export class Answer {
  readonly element = make("article", "answer");
  text = "";
  readonly #tokens = make("p", "");
  readonly #sums = make("p", "quiet");
  readonly #start = performance.now();
  #entropy = 0;
  /** Entropic time: the nats by which each token was less uncertain than the one before. */
  #tau = 0;
  #before = 0;

  constructor() {
    this.element.append(this.#tokens, this.#sums);
  }

  push({ text, entropy, logprob }: GeneratedToken): void {
    const token = make("span", "token", text);
    token.style.setProperty("--entropy", String(entropy));
    token.dataset.figure = `${entropy.toFixed(2)} nats, p ${Math.exp(logprob).toFixed(2)}`;
    this.#tokens.append(token);
    this.text += text;
    this.#entropy += entropy;
    this.#tau += Math.max(0, this.#before - entropy);
    this.#before = entropy;
    const count = this.#tokens.childElementCount;
    const speed = 1000 * count / (performance.now() - this.#start);
    this.#sums.textContent = `τ ${this.#tau.toFixed(1)} nats · ` +
      `${(this.#entropy / count).toFixed(2)} nats a token · ` +
      `${count} tokens · ${speed.toFixed(1)} tokens/s`;
  }
}
