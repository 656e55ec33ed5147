import { assertAlmostEquals, assertEquals } from "@std/assert";
import type { EndEvent, TokenEvent } from "../../../core/engine/engine.ts";
import { figuresOf, quantile } from "./figures.ts";
import type { Answer } from "./trial.ts";

const TOKEN: TokenEvent = {
  type: "token",
  token: 1,
  logprob: Math.log(1 / 4),
  entropy: 2,
  varentropy: 1,
  endProbability: 0,
  temperature: 0.7,
  top: [],
};

/** An answer of these tokens, the first after 20 ms and then one every 10 ms. */
function answerOf(tokens: number[], attention?: EndEvent["attention"]): Answer {
  return {
    arrival: 0,
    tokens: tokens.map((token) => ({ ...TOKEN, token })),
    times: tokens.map((_, i) => 20 + 10 * i),
    end: {
      type: "end",
      reason: "length",
      usage: { promptTokens: 3, cachedTokens: 0, completionTokens: tokens.length },
      timings: { queued: 5, prefill: 15, decode: 10 * (tokens.length - 1) },
      tau: 6,
      cost: { flops: 2e9, weightBytes: 3e9, kvBytes: 1e9, seconds: 0.5 },
      ...(attention && { attention }),
    },
  };
}

const trialOf = (...answers: Answer[]) => ({ answers, duration: 50, wallSeconds: 1 });

Deno.test("figuresOf reads speed and entropic time off the answers", () => {
  const figures = figuresOf(trialOf(answerOf([1, 2, 3, 4]), answerOf([1, 1, 1, 1])));
  assertAlmostEquals(figures.latency, 0.05);
  assertAlmostEquals(figures.ttft, 0.02);
  assertAlmostEquals(figures.gap_p99, 0.01);
  assertAlmostEquals(figures.throughput, 160);
  assertAlmostEquals(figures.nats_per_second, 12);
  assertAlmostEquals(figures.nats_per_gigaflop, 3);
  assertAlmostEquals(figures.nats_per_gigabyte, 1.5);
  assertAlmostEquals(figures.nats_per_token, 1.5);
  assertAlmostEquals(figures.text_perplexity, 4);
  assertAlmostEquals(figures.distinct_2, (1 + 1 / 3) / 2);
});

Deno.test("figuresOf counts dense attention as all of it, pruned by bytes and steps", () => {
  const { attention_bytes, attention_macs, mass_dropped } = figuresOf(
    trialOf(answerOf([1, 2, 3, 4])),
  );
  assertEquals([attention_bytes, attention_macs, mass_dropped], [1, 1, 0]);
  const report = {
    policy: "mass",
    prunedSteps: 5,
    steps: 10,
    blocksRead: 1,
    blocksTotal: 4,
    bytesRead: 30,
    bytesTotal: 100,
    macs: 60,
    macsTotal: 100,
    massDropped: 0.08,
  } as const;
  const pruned = figuresOf(trialOf(answerOf([1, 2, 3, 4], report)));
  assertAlmostEquals(pruned.attention_bytes, 0.3);
  assertAlmostEquals(pruned.attention_macs, 0.6);
  assertAlmostEquals(pruned.mass_dropped, 0.04);
});

Deno.test("quantile takes the value of the nearest rank", () => {
  const values = [4, 1, 3, 2];
  assertEquals([0, 0.5, 0.99, 1].map((share) => quantile(values, share)), [1, 3, 4, 4]);
  assertEquals(quantile([], 0.5), NaN);
});
