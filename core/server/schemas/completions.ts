/** `POST /v1/completions`. */
import { z } from "@hono/zod-openapi";
import { atMost, boolean, integer, string, tokenIds, unsupported } from "./fields.ts";
import { generationSchema } from "./generation.ts";
import { entropicSchema, traceSchema } from "./entropic.ts";
import { finishReasonSchema, timingsSchema, usageSchema } from "./responses.ts";

const PROMPT =
  "a non-empty string, a non-empty array of token ids, or a non-empty array of up to 1024 of either";

const text = string(PROMPT).min(1, { error: PROMPT });
const tokens = tokenIds(PROMPT).min(1, { error: PROMPT });

export const completionBodySchema = generationSchema.extend({
  prompt: z.union([
    text,
    tokens,
    atMost(1024, z.array(z.union([text, tokens], { error: PROMPT })).min(1), PROMPT),
  ], { error: PROMPT }).openapi({
    description:
      "Text is plain text: control tokens in it are not parsed. Token ids are taken as " +
      "they are.",
  }),
  echo: boolean().nullish().openapi({ description: "Puts the prompt before the completion." }),
  logprobs: integer(0, 20, "an integer from 0 to 20").nullish(),
  best_of: integer(1, 2 ** 31 - 1, "an integer equal to n").nullish().openapi({
    description: "Choices are not ranked: only the value of n is allowed.",
  }),
  suffix: unsupported("Fill in the middle.", (value) => value === "", "leave it out"),
}).openapi("CompletionRequest");

export type CompletionBody = z.infer<typeof completionBodySchema>;
export type PromptBody = CompletionBody["prompt"];

const completionLogprobsSchema = z.object({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number().nullable()).openapi({
    description: "null for the first token of an echoed prompt.",
  }),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullable(),
  text_offset: z.array(z.int()).openapi({ description: "Characters before the token." }),
}).openapi("CompletionLogprobs");

export type CompletionLogprobs = z.infer<typeof completionLogprobsSchema>;

/** One shape for the whole answer and for the chunks of a stream, as at OpenAI. */
export const completionSchema = z.object({
  id: z.string().openapi({ example: "cmpl-2b1c4e" }),
  object: z.literal("text_completion"),
  created: z.int(),
  model: z.string(),
  system_fingerprint: z.string(),
  choices: z.array(z.object({
    index: z.int(),
    text: z.string(),
    logprobs: completionLogprobsSchema.nullable(),
    finish_reason: finishReasonSchema.nullable(),
    entropic_trace: traceSchema.optional(),
  })),
  usage: usageSchema.nullable().optional(),
  timings: timingsSchema.optional(),
  entropic: entropicSchema.optional(),
}).openapi("Completion");

export type Completion = z.infer<typeof completionSchema>;
