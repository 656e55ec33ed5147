/** What a request must satisfy to be queued at all. */
import { ATTENTION_POLICIES } from "../entropic/pruning.ts";
import { TEMPERATURE_LAWS, temperatureControl } from "../entropic/temperature.ts";
import { RequestError } from "../errors.ts";
import type { EngineInfo, SamplingParams, SequenceRequest } from "./engine.ts";

const MAX_SEED = 0xffff_ffff_ffff_ffffn;

/** @throws {RequestError} The request can never be served; names the field and what is allowed. */
export function checkRequest(request: SequenceRequest, info: EngineInfo): void {
  checkTokens("prompt", request.prompt, info.config.vocabularySize);
  if (request.prompt.length === 0) {
    throw refuse("prompt", "empty", "at least 1 token");
  }
  checkNumbers(request, info);
  checkControl(request.sampling);
  checkAttention(request, info);
  checkTokens("stop_token_ids", request.stopTokens ?? [], info.config.vocabularySize);
  const { logitBias = [] } = request.sampling;
  if (!Array.isArray(logitBias) || !logitBias.every(Array.isArray)) {
    throw refuse("logit_bias", logitBias, "pairs of a token id and a number");
  }
  checkTokens("logit_bias", logitBias.map(([token]) => token), info.config.vocabularySize);
  for (const [, bias] of logitBias) {
    if (!(bias < Infinity)) throw refuse("logit_bias", bias, "a finite number or -Infinity");
  }
  const { length } = request.prompt;
  if (length + request.maxTokens > info.maxSequenceTokens) {
    throw new RequestError(
      `Cannot fit the request: the context size is ${info.maxSequenceTokens} tokens, ` +
        `the request asks for ${length + request.maxTokens} ` +
        `(${length} in the prompt, ${request.maxTokens} in max_tokens)`,
      { param: "max_tokens", code: "context_length_exceeded" },
    );
  }
}

function checkNumbers(request: SequenceRequest, { limits }: EngineInfo): void {
  const { sampling } = request;
  const whole = (value: number) => Number.isSafeInteger(value) && value >= 0;
  const within = (low: number, high: number) => (value: number) => value >= low && value <= high;
  const rules: readonly [string, number | undefined, (value: number) => boolean, string][] = [
    ["max_tokens", request.maxTokens, whole, "a whole number >= 0"],
    ["min_tokens", request.minTokens, whole, "a whole number >= 0"],
    ["priority", request.priority, Number.isFinite, "a finite number"],
    [
      "entropic.latency_target",
      request.latencyTarget,
      within(Number.MIN_VALUE, Number.MAX_VALUE),
      "a finite number > 0",
    ],
    [
      "top_logprobs",
      request.topLogprobs,
      (value) => whole(value) && value <= limits.topK,
      `a whole number from 0 to ${limits.topK}`,
    ],
    ["temperature", sampling.temperature, within(0, Number.MAX_VALUE), "a finite number >= 0"],
    ["top_k", sampling.topK, whole, "a whole number >= 0"],
    ["top_p", sampling.topP, within(Number.MIN_VALUE, 1), "a number in (0, 1]"],
    ["min_p", sampling.minP, within(0, 1), "a number in [0, 1]"],
    [
      "repetition_penalty",
      sampling.repetitionPenalty,
      within(Number.MIN_VALUE, Number.MAX_VALUE),
      "a finite number > 0",
    ],
    ["presence_penalty", sampling.presencePenalty, within(-2, 2), "a number in [-2, 2]"],
    ["frequency_penalty", sampling.frequencyPenalty, within(-2, 2), "a number in [-2, 2]"],
  ];
  for (const [param, value, allows, allowed] of rules) {
    if (value !== undefined && !allows(value)) throw refuse(param, value, allowed);
  }
  const { seed } = sampling;
  if (typeof seed !== "bigint" || seed < 0n || seed > MAX_SEED) {
    throw refuse("seed", seed, `a bigint from 0 to ${MAX_SEED}`);
  }
}

function checkControl({ temperature, temperatureControl: given }: SamplingParams): void {
  if (given === undefined) return;
  if (!TEMPERATURE_LAWS.includes(given.law)) {
    throw refuse("entropic.temperature.law", given.law, TEMPERATURE_LAWS.join(", "));
  }
  if (temperature === 0) {
    throw refuse("temperature", 0, "a number above 0 where a law steers it from there");
  }
  const control = temperatureControl(given);
  for (const [name, { allows, allowed }] of Object.entries(CONTROL_RULES)) {
    const value = control[name as keyof typeof CONTROL_RULES];
    if (!allows(value)) throw refuse(`entropic.temperature.${name}`, value, allowed);
  }
  if (control.min > control.max) {
    throw refuse("entropic.temperature.min", control.min, `a number up to max, ${control.max}`);
  }
}

const CONTROL_RULES = {
  target: { allows: (x: number) => x >= 0 && x < Infinity, allowed: "a finite number >= 0" },
  eta: { allows: (x: number) => x > 0 && x < Infinity, allowed: "a finite number > 0" },
  leak: { allows: (x: number) => x > 0 && x <= 1, allowed: "a number in (0, 1]" },
  kappa: { allows: (x: number) => x > 0 && x < 1, allowed: "a number in (0, 1)" },
  min: { allows: (x: number) => x >= 0.01 && x <= 100, allowed: "a number in [0.01, 100]" },
  max: { allows: (x: number) => x >= 0.01 && x <= 100, allowed: "a number in [0.01, 100]" },
};

function checkAttention({ attention }: SequenceRequest, { attention: info }: EngineInfo): void {
  if (attention === undefined) return;
  const { policy, mass, minBlocks, gain, threshold } = attention;
  if (!ATTENTION_POLICIES.includes(policy)) {
    throw refuse("entropic.attention.policy", policy, ATTENTION_POLICIES.join(", "));
  }
  if (!info.allowed.includes(policy)) {
    const why = "here, for this engine has no sketch of the model's keys";
    throw refuse("entropic.attention.policy", policy, `${info.allowed.join(", ")} ${why}`);
  }
  const check = (name: string, value: number | undefined, low: number, high: number) => {
    if (value === undefined || (value >= low && value <= high)) return;
    throw refuse(`entropic.attention.${name}`, value, `a number in [${low}, ${high}]`);
  };
  check("mass", mass, info.floor.mass, 1);
  check("gain", gain, -1, 1);
  check("threshold", threshold, 0, 1);
  const { minBlocks: least } = info.floor;
  if (minBlocks !== undefined && !(Number.isSafeInteger(minBlocks) && minBlocks >= least)) {
    throw refuse("entropic.attention.min_blocks", minBlocks, `a whole number >= ${least}`);
  }
}

function checkTokens(param: string, tokens: ArrayLike<number>, vocabularySize: number): void {
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as number;
    if (!Number.isInteger(token) || token < 0 || token >= vocabularySize) {
      throw refuse(param, token, `token ids from 0 to ${vocabularySize - 1}`);
    }
  }
}

function refuse(param: string, value: unknown, allowed: string): RequestError {
  return new RequestError(`Cannot use ${param}: current value is ${value}; allowed: ${allowed}`, {
    param,
  });
}
