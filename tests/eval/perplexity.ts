/**
 * Perplexity as llama.cpp's `llama-perplexity` computes it: the text's tokens without BOS, cut into
 * windows that do not overlap; in each the tokens of the second half count, given all before them in
 * the window. exp of the mean negative log-probability.
 */
import type { Engine } from "../../core/engine/engine.ts";

export interface Perplexity {
  readonly ppl: number;
  /** Standard error, to first order: that of the mean times the perplexity. */
  readonly error: number;
  readonly windows: number;
  /** Tokens that counted. */
  readonly tokens: number;
}

/** Log-probability of each token of a window but the first: entry i is that of token i + 1. */
export type ScoreWindow = (tokens: Uint32Array) => Promise<readonly number[]>;

/**
 * @param tokens A whole text.
 * @param size Tokens in a window.
 * @param most Windows to take, from the start; the rest that fills no window is dropped.
 */
export async function perplexity(
  tokens: Uint32Array,
  score: ScoreWindow,
  size: number,
  most = Infinity,
): Promise<Perplexity> {
  const windows = Math.min(most, Math.floor(tokens.length / size));
  if (windows === 0) {
    throw new RangeError(`Cannot compute perplexity: ${tokens.length} tokens fill no window`);
  }
  let [sum, squares, count] = [0, 0, 0];
  for (let window = 0; window < windows; window++) {
    const logprobs = await score(tokens.subarray(window * size, (window + 1) * size));
    for (const logprob of logprobs.slice(size >> 1)) {
      sum -= logprob;
      squares += logprob * logprob;
      count++;
    }
  }
  const mean = sum / count;
  const variance = squares / count - mean * mean;
  const ppl = Math.exp(mean);
  return { ppl, error: ppl * Math.sqrt(variance / (count - 1)), windows, tokens: count };
}

/** Scores a window by the log-probabilities that an engine reports for a prompt. */
export function engineScore(engine: Engine): ScoreWindow {
  return async (prompt) => {
    const stream = await engine.submit({
      prompt,
      sampling: { temperature: 0, seed: 0n },
      maxTokens: 0,
      promptLogprobs: true,
    });
    let logprobs: number[] = [];
    for await (const event of stream) {
      if (event.type === "prompt") logprobs = event.logprobs.map(({ logprob }) => logprob);
    }
    return logprobs;
  };
}
