/**
 * How well each temperature law holds its target on a real model, and what that does to the text:
 * mean and deviation of the entropy at the temperature drawn with, share of tokens on a rail, distinct
 * bigrams and repeated 4-grams (Li et al., arXiv 1510.03055; Welleck et al., arXiv 1908.04319).
 */
import type { EndEvent, SamplingParams } from "../../core/engine/engine.ts";
import { TEMPERATURE_LAWS } from "../../core/entropic/temperature.ts";
import type { LanguageModel } from "../../core/language_model.ts";
import { encodePrompt } from "../../core/model/chat_template.ts";
import { INSTRUCTIONS } from "./scheduling/instructions.ts";

/** Nats: below, at and above what SmolLM2 has at temperature 1. */
const TARGETS = [1, 1.5, 2];
const TOKENS = 160;
/** Every 11th instruction asks for something else about something else. */
const PROMPTS = INSTRUCTIONS.filter((_, i) => i % 11 === 0).slice(0, 16);

export interface SamplingResult {
  readonly name: "sampling";
  readonly law: string;
  readonly target: number | null;
  readonly entropy: number;
  readonly deviation: number;
  readonly temperature: number;
  readonly railShare: number;
  readonly gain: number;
  /** Nats of entropic time a token. */
  readonly tau: number;
  readonly distinct2: number;
  readonly repeated4: number;
}

interface Sample {
  readonly end: EndEvent;
  readonly tokens: readonly number[];
  /** Of the model's own distribution, summed. */
  readonly entropy: number;
  readonly entropySquared: number;
}

async function sample(
  { engine, tokenizer, template }: LanguageModel,
  content: string,
  sampling: SamplingParams,
): Promise<Sample> {
  if (template === undefined) throw new TypeError("Cannot evaluate: there is no chat template");
  const text = template.render([{ role: "user", content }], { addGenerationPrompt: true });
  const prompt = encodePrompt(tokenizer, text);
  const tokens: number[] = [];
  let entropy = 0, entropySquared = 0;
  const asked = { prompt, sampling, maxTokens: TOKENS, ignoreEos: true };
  for await (const event of await engine.submit(asked)) {
    if (event.type === "token") {
      tokens.push(event.token);
      entropy += event.entropy;
      entropySquared += event.entropy ** 2;
    } else if (event.type === "end") return { end: event, tokens, entropy, entropySquared };
  }
  throw new Error("Cannot evaluate: the stream has no end");
}

function summarize(law: string, target: number | null, samples: readonly Sample[]): SamplingResult {
  const mean = (of: (sample: Sample) => number) =>
    samples.reduce((sum, one) => sum + of(one), 0) / samples.length;
  const entropy = mean(({ end, entropy }) => end.temperature?.meanEntropy ?? entropy / TOKENS);
  const square = mean(({ end: { temperature: report }, entropySquared }) =>
    report ? report.meanEntropy ** 2 + report.entropyDeviation ** 2 : entropySquared / TOKENS
  );
  return {
    name: "sampling",
    law,
    target,
    entropy,
    deviation: Math.sqrt(square - entropy ** 2),
    temperature: mean(({ end }) => end.temperature?.meanTemperature ?? 1),
    railShare: mean(({ end }) => end.temperature?.railShare ?? 0),
    gain: mean(({ end }) => end.temperature?.meanGain ?? 0),
    tau: mean(({ end }) => end.tau / TOKENS),
    distinct2: mean(({ tokens }) => distinct(tokens, 2)),
    repeated4: 1 - mean(({ tokens }) => distinct(tokens, 4)),
  };
}

/** Distinct n-grams over all of them. */
export function distinct(tokens: readonly number[], n: number): number {
  const grams = tokens.slice(n - 1).map((_, i) => tokens.slice(i, i + n).join());
  return new Set(grams).size / grams.length;
}

export async function evaluateSampling(model: LanguageModel): Promise<SamplingResult[]> {
  const results: SamplingResult[] = [];
  const evaluate = async (law: string, target: number | null, control: Partial<SamplingParams>) => {
    const samples = await Promise.all(
      PROMPTS.map((prompt, i) => sample(model, prompt, { seed: BigInt(i), ...control })),
    );
    const result = summarize(law, target, samples);
    results.push(result);
    const { entropy, deviation, temperature, railShare, gain, tau, distinct2, repeated4 } = result;
    console.error(
      `sampling ${law.padEnd(10)} target ${target ?? "-"}: H ${entropy.toFixed(3)} ± ` +
        `${deviation.toFixed(2)}, T ${temperature.toFixed(2)}, rail ${railShare.toFixed(2)}, ` +
        `gain ${gain.toFixed(2)}, tau/token ${tau.toFixed(2)}, ` +
        `distinct-2 ${distinct2.toFixed(3)}, repeated-4 ${repeated4.toFixed(3)}`,
    );
  };
  await evaluate("off", null, {});
  for (const target of TARGETS) {
    for (const law of TEMPERATURE_LAWS) {
      await evaluate(law, target, { temperatureControl: { law, target } });
    }
  }
  return results;
}
