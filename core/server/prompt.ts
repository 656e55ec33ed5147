/** What the client sent, messages or text or ids, to the token ids of a prompt. */
import { RequestError } from "../errors.ts";
import type { LanguageModel } from "../language_model.ts";
import { type ChatMessage, encodePrompt } from "../model/chat_template.ts";
import { ApiError } from "./api_error.ts";
import { refusal } from "./refusal.ts";
import type { MessageBody } from "./schemas/chat.ts";
import type { PromptBody } from "./schemas/completions.ts";

/**
 * Renders a conversation with the model's own template.
 *
 * @throws {RequestError} The template refuses the messages.
 * @throws {ApiError} The model has no template.
 */
export function encodeMessages(
  model: LanguageModel,
  messages: readonly MessageBody[],
  addGenerationPrompt = true,
): Uint32Array {
  if (model.template === undefined) {
    const message = `Cannot use messages: the model ${model.id} has no chat template; ` +
      "allowed is a prompt at /v1/completions";
    throw new ApiError(400, message, { param: "messages", code: "no_chat_template" });
  }
  const segments = model.template.render(messages.map(toMessage), { addGenerationPrompt });
  checkLength(model, segments.reduce((sum, { text }) => sum + text.length, 0));
  return encodePrompt(model.tokenizer, segments);
}

function toMessage({ role, content, name }: MessageBody): ChatMessage {
  const text = typeof content === "string" ? content : content.map((part) => part.text).join("\n");
  // `developer` is OpenAI's newer name for `system`; templates know the older one.
  return {
    role: role === "developer" ? "system" : role,
    content: text,
    ...(name != null && { name }),
  };
}

/** A prompt of a text completion. */
export interface TextPrompt {
  readonly tokens: ArrayLike<number>;
  /** For an echo; decoded on demand where the client sent ids. */
  readonly text: string;
}

/** The prompts that a text completion asks for, one or several. */
export function promptList(body: PromptBody): readonly (string | readonly number[])[] {
  return isTokenList(body) || typeof body === "string" ? [body] : body;
}

/** The prompts of a text completion in tokens. @throws {RequestError} An id is no token. */
export function encodeTextPrompts(
  model: LanguageModel,
  body: PromptBody,
): readonly TextPrompt[] {
  const { tokenizer } = model;
  const list = promptList(body);
  return list.map((prompt, index) => {
    if (typeof prompt === "string") {
      checkLength(model, prompt.length);
      return { tokens: tokenizer.encode(prompt, { addSpecial: true }), text: prompt };
    }
    checkTokens(model, list === body ? `prompt[${index}]` : "prompt", prompt);
    return {
      tokens: prompt,
      get text() {
        return tokenizer.decode(prompt, { special: true });
      },
    };
  });
}

function isTokenList(body: PromptBody): body is number[] {
  return Array.isArray(body) && typeof body[0] === "number";
}

/** @throws {RequestError} An id outside the vocabulary. */
export function checkTokens(model: LanguageModel, param: string, tokens: readonly number[]): void {
  const size = model.tokenizer.vocabularySize;
  const index = tokens.findIndex((token) => token >= size);
  if (index < 0) return;
  throw refusal(`${param}[${index}]`, tokens[index], `a token id from 0 to ${size - 1}`);
}

/**
 * Refuses a text that cannot fit the context, whatever its tokens are: encoding megabytes would hold
 * up this thread, and with it every other client, for seconds.
 *
 * @param length Of the text, in UTF-16 units.
 * @throws {RequestError} It makes more tokens than the context has.
 */
export function checkLength({ tokenizer, engine }: LanguageModel, length: number): void {
  const least = Math.ceil(length / tokenizer.longestToken);
  const context = engine.info.maxSequenceTokens;
  if (least <= context) return;
  throw new RequestError(
    `Cannot fit the request: current value is at least ${least} prompt tokens; ` +
      `allowed is ${context} tokens in all, the model's context`,
    { param: "prompt", code: "context_length_exceeded" },
  );
}
