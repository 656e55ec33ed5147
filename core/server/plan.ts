/** From a parsed body to what the engine is asked to do. Checks what only the model can tell. */
import { RequestError } from "../errors.ts";
import type { SamplingParams, SequenceRequest } from "../engine/engine.ts";
import type { AttentionControl } from "../entropic/pruning.ts";
import type { LanguageModel } from "../language_model.ts";
import { ApiError } from "./api_error.ts";
import { checkTokens } from "./prompt.ts";
import { refusal } from "./refusal.ts";
import type { EntropicRequest } from "./schemas/entropic.ts";
import type { GenerationBody } from "./schemas/generation.ts";

export interface PlanOptions {
  /** `max_tokens` as the client asked, by the name it used. */
  readonly maxTokens: { readonly param: string; readonly value: number | undefined };
  /** Tokens that a request which names no number gets at most. */
  readonly defaultMaxTokens: number;
  /** How many of the most likely tokens each event lists, by the field that says so. */
  readonly topLogprobs: { readonly param: string; readonly value: number };
  readonly promptLogprobs: boolean;
}

/**
 * One request a choice: choice `k * n + i` is the i-th answer to prompt `k`, with the seed plus `i`.
 *
 * @throws {RequestError} A value that does not fit this model, or more tokens than its context.
 */
export function planRequests(
  model: LanguageModel,
  body: GenerationBody,
  prompts: readonly ArrayLike<number>[],
  options: PlanOptions,
): readonly SequenceRequest[] {
  checkModel(model, body.model);
  checkTopLogprobs(model, options.topLogprobs);
  if (body.stream_options != null && body.stream !== true) {
    throw refusal("stream_options", body.stream_options, "null unless stream is true");
  }
  checkTokens(model, "stop_token_ids", body.stop_token_ids ?? []);
  const sampling = toSampling(model, body);
  const extension = toExtension(body.entropic);
  const minTokens = body.min_tokens ?? 0;
  return prompts.flatMap((prompt) => {
    const maxTokens = fitContext(model.engine.info.maxSequenceTokens, prompt.length, options);
    if (minTokens > maxTokens) {
      throw refusal("min_tokens", minTokens, `an integer from 0 to max_tokens, here ${maxTokens}`);
    }
    return Array.from({ length: body.n ?? 1 }, (_, choice): SequenceRequest => ({
      prompt,
      sampling: { ...sampling, seed: BigInt.asUintN(64, sampling.seed + BigInt(choice)) },
      maxTokens,
      minTokens,
      stopTokens: body.stop_token_ids ?? [],
      ignoreEos: body.ignore_eos ?? false,
      priority: body.priority ?? 0,
      ...extension,
      topLogprobs: options.topLogprobs.value,
      promptLogprobs: options.promptLogprobs,
    }));
  });
}

/** The strings that end a completion. */
export function stopStrings({ stop }: GenerationBody): readonly string[] {
  return typeof stop === "string" ? [stop] : stop ?? [];
}

/** @throws {ApiError} 404: the request names a model that is not served here. */
export function checkModel(model: LanguageModel, name: string | null | undefined): void {
  if (name == null || name === model.id) return;
  const { message } = refusal("model", name, model.id);
  throw new ApiError(404, message, { param: "model", code: "model_not_found" });
}

/**
 * To be called before the prompts are encoded, for there may be many.
 *
 * @param maxChoices Most choices of one request, over all its prompts.
 * @throws {RequestError} The request asks for more.
 */
export function checkChoices({ n }: GenerationBody, prompts: number, maxChoices: number): void {
  if (prompts * (n ?? 1) <= maxChoices) return;
  if (prompts <= 1) throw refusal("n", n, `an integer from 1 to ${maxChoices}`);
  throw new RequestError(
    `Cannot use prompt: current value has ${prompts} prompts with ${n ?? 1} choices each; ` +
      `allowed is ${maxChoices} choices in all`,
    { param: "prompt", code: "invalid_value" },
  );
}

function checkTopLogprobs(
  model: LanguageModel,
  { param, value }: PlanOptions["topLogprobs"],
): void {
  const most = Math.min(model.tokenizer.vocabularySize, model.engine.info.limits.topK);
  if (value > most) throw refusal(param, value, `an integer from 0 to ${most}`);
}

/** @returns The most tokens that the completion may have. */
function fitContext(context: number, prompt: number, options: PlanOptions): number {
  const { param, value } = options.maxTokens;
  const room = context - prompt;
  if (value === undefined && room >= 1) return Math.min(room, options.defaultMaxTokens);
  if (value !== undefined && value <= room) return value;
  const asked = value === undefined ? "at least 1 more" : `${value} more`;
  throw new RequestError(
    `Cannot fit the request: current value is ${prompt} prompt tokens and ${asked} to generate; ` +
      `allowed is ${context} tokens in all, the model's context`,
    { param: value === undefined || room < 1 ? "prompt" : param, code: "context_length_exceeded" },
  );
}

function toSampling(model: LanguageModel, body: GenerationBody): SamplingParams {
  return {
    temperature: body.temperature ?? 1,
    topK: Math.max(0, body.top_k ?? 0),
    topP: body.top_p ?? 1,
    minP: body.min_p ?? 0,
    repetitionPenalty: body.repetition_penalty ?? 1,
    presencePenalty: body.presence_penalty ?? 0,
    frequencyPenalty: body.frequency_penalty ?? 0,
    logitBias: toLogitBias(model, body.logit_bias ?? {}),
    ...toControl(body.entropic?.temperature),
    seed: body.seed == null ? randomSeed() : BigInt.asUintN(64, BigInt(body.seed)),
  };
}

/** Defaults are left to the engine. */
function toControl(
  given: EntropicRequest["temperature"],
): Pick<SamplingParams, "temperatureControl"> {
  if (given == null || given.law === "off") return {};
  const { law, ...tuning } = given;
  const tuned = Object.entries(tuning).filter(([, value]) => value != null);
  return { temperatureControl: { law, ...Object.fromEntries(tuned) } };
}

/** What `entropic` asks of a request as a whole. Defaults are left to the engine. */
function toExtension(
  given: GenerationBody["entropic"],
): Pick<SequenceRequest, "attention" | "latencyTarget"> {
  const { attention, latency_target } = given ?? {};
  return {
    ...(attention != null && { attention: toAttention(attention) }),
    ...(latency_target != null && { latencyTarget: 1000 * latency_target }),
  };
}

function toAttention(given: NonNullable<EntropicRequest["attention"]>): AttentionControl {
  const { policy, mass, min_blocks: minBlocks, gain, threshold } = given;
  return {
    policy,
    ...(mass != null && { mass }),
    ...(minBlocks != null && { minBlocks }),
    ...(gain != null && { gain }),
    ...(threshold != null && { threshold }),
  };
}

function toLogitBias(model: LanguageModel, bias: Readonly<Record<string, number>>) {
  const size = model.tokenizer.vocabularySize;
  return Object.entries(bias).map(([key, value]) => {
    const id = Number(key);
    if (id >= size) {
      throw refusal("logit_bias", key, `an object with token ids from 0 to ${size - 1}`);
    }
    return [id, value] as const;
  });
}

function randomSeed(): bigint {
  const [seed] = crypto.getRandomValues(new BigUint64Array(1));
  return seed ?? 0n;
}
