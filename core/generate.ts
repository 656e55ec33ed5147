/** Text in, text out: the short way for programs; the HTTP server has its own, with choices. */
import type { EndEvent, SamplingParams, SequenceRequest, TokenEvent } from "./engine/engine.ts";
import { RequestError } from "./errors.ts";
import type { LanguageModel } from "./language_model.ts";
import { type ChatMessage, encodePrompt } from "./model/chat_template.ts";
import { TextStream } from "./model/text_stream.ts";
import { checkNames, type Names, show } from "./options.ts";

export interface GenerateOptions extends Omit<SamplingParams, "seed"> {
  /** The same seed gives the same tokens: a whole number from 0 to 2^64 - 1. 0 where left out. */
  readonly seed?: number | bigint;
  /** Most tokens to generate; 128 where left out. */
  readonly maxTokens?: number;
  /** How generated tokens attend to what was before; the engine's default where left out. */
  readonly attention?: NonNullable<SequenceRequest["attention"]>;
  /** Milliseconds to the last token that are hoped for. */
  readonly latencyTarget?: number;
  /** Strings that end the text; not part of it. */
  readonly stop?: readonly string[];
  readonly signal?: AbortSignal;
}

const OPTIONS: Names<GenerateOptions> = {
  maxTokens: true,
  temperature: true,
  temperatureControl: true,
  topK: true,
  topP: true,
  minP: true,
  repetitionPenalty: true,
  presencePenalty: true,
  frequencyPenalty: true,
  logitBias: true,
  seed: true,
  stop: true,
  attention: true,
  latencyTarget: true,
  signal: true,
};

/** One generated token, and the text that it made certain: `""` while a character is incomplete. */
export interface GeneratedToken extends Omit<TokenEvent, "type"> {
  readonly text: string;
}

/** What the generator returns at its end. */
export interface GenerationSummary extends Omit<EndEvent, "type"> {
  /** Text that had been held back for a stop string or an incomplete character. */
  readonly text: string;
}

/**
 * Generates text. Greedy unless a temperature is given.
 *
 * @param prompt A text to continue, or chat messages to answer.
 * @throws {RequestError} The prompt is empty, too long, or refused by the chat template, or an option
 * is out of range.
 * @throws {TypeError} The prompt is neither, or there is no such option.
 *
 * @example
 * ```ts
 * for await (const { text, entropy } of generate(model, "The capital of France is")) {
 *   console.log(text, entropy);
 * }
 * ```
 */
export async function* generate(
  model: LanguageModel,
  prompt: string | readonly ChatMessage[],
  options: GenerateOptions = {},
): AsyncGenerator<GeneratedToken, GenerationSummary, void> {
  checkNames("generate", options, OPTIONS);
  const { maxTokens = 128, attention, latencyTarget, stop = [], signal, ...rest } = options;
  const { seed = 0n, ...sampling } = rest;
  checkStops(stop);
  const text = new TextStream(model.tokenizer, stop);
  signal?.throwIfAborted();
  const stream = await model.engine.submit({
    prompt: promptTokens(model, prompt),
    sampling: { temperature: 0, ...sampling, seed: wholeSeed(seed) },
    maxTokens,
    ...(attention && { attention }),
    ...(latencyTarget !== undefined && { latencyTarget }),
  });
  const abort = () => stream.abort();
  signal?.addEventListener("abort", abort);
  try {
    signal?.throwIfAborted();
    for await (const event of stream) {
      if (event.type === "token" && !text.stopped) {
        const { type: _, ...token } = event;
        yield { ...token, text: text.push(event.token) };
        if (text.stopped) stream.abort();
      } else if (event.type === "end") {
        signal?.throwIfAborted();
        const { type: _, ...end } = event;
        return { ...end, text: text.finish(), ...(text.stopped && { reason: "stop" }) };
      }
    }
    throw new Error("Cannot finish the text: the engine's stream ended without an end event");
  } finally {
    signal?.removeEventListener("abort", abort);
    stream.abort();
  }
}

function promptTokens(
  { tokenizer, template, id }: LanguageModel,
  prompt: string | readonly ChatMessage[],
): Uint32Array {
  if (typeof prompt === "string") return tokenizer.encode(prompt, { addSpecial: true });
  checkMessages(prompt);
  if (template === undefined) {
    throw new RequestError(`Cannot answer messages: the model ${id} has no chat template`);
  }
  return encodePrompt(tokenizer, template.render(prompt, { addGenerationPrompt: true }));
}

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages)) {
    throw new TypeError(`Cannot use ${show(messages)} as a prompt: it is a text or chat messages`);
  }
  if (messages.length === 0) throw new RequestError("Cannot answer messages: there are none");
  for (const [index, message] of messages.entries()) {
    if (typeof message?.role === "string" && typeof message.content === "string") continue;
    throw new TypeError(`Cannot use message ${index}: role and content are texts`);
  }
}

function checkStops(stop: unknown): void {
  if (Array.isArray(stop) && stop.every((text) => typeof text === "string")) return;
  throw new TypeError(`Cannot use ${show(stop)} as stop: it is an array of texts`);
}

/** @throws {RequestError} It is no whole number; the engine knows how large it may be. */
function wholeSeed(seed: number | bigint): bigint {
  if (typeof seed === "bigint") return seed;
  if (Number.isSafeInteger(seed) && seed >= 0) return BigInt(seed);
  throw new RequestError(
    `Cannot use seed: current value is ${seed}; allowed: a whole number from 0 to 2^53 - 1, or a bigint`,
  );
}
