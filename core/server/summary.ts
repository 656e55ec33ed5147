/** Usage, timings and entropy of a whole answer, gathered from the ends of its choices. */
import type { ChoiceEnd } from "./choice.ts";
import type { Entropic, Timings, Usage } from "./schemas/responses.ts";

export class Summary {
  #choicesPerPrompt: number;
  #ends = new Map<number, ChoiceEnd>();

  /** @param choicesPerPrompt Choices `k * n` to `k * n + n - 1` answer prompt `k`. */
  constructor(choicesPerPrompt: number) {
    this.#choicesPerPrompt = choicesPerPrompt;
  }

  add(index: number, end: ChoiceEnd): void {
    this.#ends.set(index, end);
  }

  get usage(): Usage {
    let prompt = 0;
    let cached = 0;
    const completion = this.#completionTokens;
    for (const [index, { event }] of this.#ends) {
      if (index % this.#choicesPerPrompt !== 0) continue;
      prompt += event.usage.promptTokens;
      cached += event.usage.cachedTokens;
    }
    return {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: cached },
    };
  }

  get timings(): Timings {
    const predicted = this.#completionTokens;
    const ends = [...this.#ends.values()].map(({ event }) => event);
    const cached = sum(ends.map(({ usage }) => usage.cachedTokens));
    const computed = sum(ends.map(({ usage }) => usage.promptTokens)) - cached;
    const promptMs = Math.max(0, ...ends.map(({ timings }) => timings.prefill));
    const predictedMs = Math.max(0, ...ends.map(({ timings }) => timings.decode));
    return {
      queued_ms: Math.max(0, ...ends.map(({ timings }) => timings.queued)),
      cache_n: cached,
      prompt_n: computed,
      prompt_ms: promptMs,
      prompt_per_second: perSecond(computed, promptMs),
      predicted_n: predicted,
      predicted_ms: predictedMs,
      predicted_per_second: perSecond(predicted, predictedMs),
    };
  }

  get entropic(): Entropic {
    const ends = [...this.#ends.values()];
    const tokens = this.#completionTokens;
    const entropy = sum(ends.map(({ entropySum }) => entropySum));
    return {
      tau: sum(ends.map(({ event }) => event.tau)),
      mean_entropy: tokens === 0 ? 0 : entropy / tokens,
    };
  }

  get #completionTokens(): number {
    return sum([...this.#ends.values()].map(({ completionTokens }) => completionTokens));
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function perSecond(count: number, milliseconds: number): number {
  return milliseconds > 0 ? (1000 * count) / milliseconds : 0;
}
