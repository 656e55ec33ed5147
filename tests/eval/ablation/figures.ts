/** What is read off one run: speed, entropic time for its cost, what attention read, and the text. */
import type { EndEvent } from "../../../core/engine/engine.ts";
import { addCost, efficiency, NO_COST } from "../../../core/entropic/cost.ts";
import { distinct } from "../sampling.ts";
import type { Answer, Trial } from "./trial.ts";

/** Keys are as the JSON has them. */
export interface Figures {
  /** Mean over requests, arrival to last token, seconds. */
  readonly latency: number;
  readonly latency_p99: number;
  /** Latency for each generated token: what compares where answers differ in length. */
  readonly latency_per_token: number;
  /** Generated tokens a second, from the first arrival to the last token. */
  readonly throughput: number;
  /** Mean time to the first token, seconds. */
  readonly ttft: number;
  /** Between tokens of a request, seconds. */
  readonly gap_p50: number;
  readonly gap_p99: number;
  /** Nats of entropy removed for each second inside the forward pass, 10^9 operations, 10^9 bytes. */
  readonly nats_per_second: number;
  readonly nats_per_gigaflop: number;
  readonly nats_per_gigabyte: number;
  /** Nats of entropy removed for each generated token. */
  readonly nats_per_token: number;
  /** Read by attention in generating tokens, over what dense attention would have read. */
  readonly attention_bytes: number;
  readonly attention_macs: number;
  /** Mean mass of attention left out, over all generated tokens, by the scan's estimate. */
  readonly mass_dropped: number;
  readonly tokens: number;
  /** Of the model's own distribution, mean over generated tokens, in nats. */
  readonly entropy: number;
  readonly temperature: number;
  /** Perplexity of the generated text under the distributions that it was drawn from, at T = 1. */
  readonly text_perplexity: number;
  /** Distinct bigrams over all (arXiv 1510.03055), and repeated 4-grams (arXiv 1908.04319). */
  readonly distinct_2: number;
  readonly repeated_4: number;
  readonly wall_seconds: number;
}

export function figuresOf({ answers, duration, wallSeconds }: Trial): Figures {
  const ends = answers.map(({ end }) => end);
  const tokens = answers.flatMap((answer) => answer.tokens);
  const latencies = ends.map(({ timings: { queued, prefill, decode } }) =>
    (queued + prefill + decode) / 1000
  );
  const gaps = answers.flatMap(gapsOf);
  const tau = ends.reduce((sum, end) => sum + end.tau, 0);
  const cost = ends.reduce((sum, end) => addCost(sum, end.cost), NO_COST);
  const spent = efficiency(tau, cost);
  const texts = answers.map((answer) => answer.tokens.map(({ token }) => token))
    .filter((text) => text.length >= 4);
  return {
    latency: mean(latencies),
    latency_p99: quantile(latencies, 0.99),
    latency_per_token: mean(latencies) * latencies.length / tokens.length,
    throughput: tokens.length / duration * 1000,
    ttft: mean(ends.map(({ timings: { queued, prefill } }) => (queued + prefill) / 1000)),
    gap_p50: quantile(gaps, 0.5),
    gap_p99: quantile(gaps, 0.99),
    nats_per_second: spent.natsPerSecond,
    nats_per_gigaflop: spent.natsPerGigaflop,
    nats_per_gigabyte: spent.natsPerGigabyte,
    nats_per_token: tau / tokens.length,
    ...attentionOf(ends),
    tokens: tokens.length,
    entropy: mean(tokens.map(({ entropy }) => entropy)),
    temperature: mean(tokens.map(({ temperature }) => temperature)),
    text_perplexity: Math.exp(-mean(tokens.map(({ logprob }) => logprob))),
    distinct_2: mean(texts.map((text) => distinct(text, 2))),
    repeated_4: 1 - mean(texts.map((text) => distinct(text, 4))),
    wall_seconds: wallSeconds,
  };
}

/** Seconds between an answer's tokens. */
function gapsOf({ times }: Answer): number[] {
  return times.slice(1).map((time, i) => (time - (times[i] as number)) / 1000);
}

/** 1, 1 and 0 where attention was dense by choice. */
function attentionOf(ends: readonly EndEvent[]) {
  let bytes = 0, bytesTotal = 0, macs = 0, macsTotal = 0, dropped = 0, steps = 0;
  for (const { attention: report } of ends) {
    if (report === undefined) continue;
    bytes += report.bytesRead;
    bytesTotal += report.bytesTotal;
    macs += report.macs;
    macsTotal += report.macsTotal;
    dropped += report.massDropped * report.prunedSteps;
    steps += report.steps;
  }
  return {
    attention_bytes: bytesTotal > 0 ? bytes / bytesTotal : 1,
    attention_macs: macsTotal > 0 ? macs / macsTotal : 1,
    mass_dropped: steps > 0 ? dropped / steps : 0,
  };
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The value below which a share of the values lies; that of the nearest rank. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}
