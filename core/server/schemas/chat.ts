/** `POST /v1/chat/completions`. */
import { z } from "@hono/zod-openapi";
import { atMost, boolean, integer, isEmpty, string, unsupported } from "./fields.ts";
import { generationSchema } from "./generation.ts";
import { entropicSchema, traceSchema } from "./entropic.ts";
import { finishReasonSchema, timingsSchema, usageSchema } from "./responses.ts";

const ROLE = "one of system, developer, user, assistant";
const CONTENT = 'a string or a non-empty array of up to 1024 parts {"type":"text","text":"…"}';
const MESSAGES = "a non-empty array of up to 2048 messages with role and content";
const TOOLS = "leave it out: this server does not call tools";

const textPart = z.object({
  type: z.literal("text", { error: CONTENT }),
  text: string(CONTENT),
}, { error: CONTENT });

export const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant"], { error: ROLE }),
  content: z.union([
    string(CONTENT),
    atMost(1024, z.array(textPart).min(1, { error: CONTENT }), CONTENT),
  ], { error: CONTENT }).openapi({ description: "Parts are joined by a line break." }),
  name: string().nullish(),
  tool_calls: unsupported("", isEmpty, TOOLS),
  function_call: unsupported("", isEmpty, TOOLS),
}, { error: MESSAGES }).openapi("ChatMessage");

export type MessageBody = z.infer<typeof messageSchema>;

export const messagesSchema = atMost(
  2048,
  z.array(messageSchema, { error: MESSAGES }).min(1, { error: MESSAGES }),
  MESSAGES,
);

/** Whether the value asks for nothing beyond plain text. */
function isTextOnly(value: unknown): boolean {
  return Array.isArray(value) && value.every((modality) => modality === "text");
}

export const chatBodySchema = generationSchema.extend({
  messages: messagesSchema,
  max_completion_tokens: integer(0, Number.MAX_SAFE_INTEGER, "an integer of at least 0").nullish()
    .openapi({
      description: "Goes before max_tokens. The default of both is what the prompt leaves of the " +
        "context.",
    }),
  logprobs: boolean().nullish(),
  top_logprobs: integer(0, 20, "an integer from 0 to 20").nullish().openapi({
    description: "Only with logprobs.",
  }),
  tools: unsupported("Tool calls.", isEmpty, TOOLS),
  tool_choice: unsupported("Tool calls.", (value) => value === "none" || value === "auto", TOOLS),
  functions: unsupported("Tool calls.", isEmpty, TOOLS),
  function_call: unsupported("Tool calls.", (value) => value === "none" || value === "auto", TOOLS),
  modalities: unsupported("Only text.", isTextOnly, 'allowed is ["text"]'),
  audio: unsupported("Only text.", isEmpty, "leave it out"),
  web_search_options: unsupported("Web search.", () => false, "leave it out"),
}).openapi("ChatCompletionRequest");

export type ChatBody = z.infer<typeof chatBodySchema>;

const tokenLogprobSchema = z.object({
  token: z.string().openapi({ description: String.raw`"bytes:\xe2" where it is no whole text.` }),
  logprob: z.number(),
  bytes: z.array(z.int()).openapi({ description: "The token's exact bytes." }),
});

const chatLogprobsSchema = z.object({
  content: z.array(tokenLogprobSchema.extend({ top_logprobs: z.array(tokenLogprobSchema) })),
}).openapi("ChatLogprobs");

export type ChatLogprobs = z.infer<typeof chatLogprobsSchema>;

const headShape = {
  id: z.string().openapi({ example: "chatcmpl-2b1c4e" }),
  created: z.int(),
  model: z.string(),
  system_fingerprint: z.string(),
};

export const chatCompletionSchema = z.object({
  ...headShape,
  object: z.literal("chat.completion"),
  choices: z.array(z.object({
    index: z.int(),
    message: z.object({
      role: z.literal("assistant"),
      content: z.string(),
      refusal: z.null(),
    }),
    logprobs: chatLogprobsSchema.nullable(),
    finish_reason: finishReasonSchema,
    entropic_trace: traceSchema.optional(),
  })),
  usage: usageSchema,
  timings: timingsSchema,
  entropic: entropicSchema,
}).openapi("ChatCompletion");

export type ChatCompletion = z.infer<typeof chatCompletionSchema>;

export const chatChunkSchema = z.object({
  ...headShape,
  object: z.literal("chat.completion.chunk"),
  choices: z.array(z.object({
    index: z.int(),
    delta: z.object({ role: z.literal("assistant").optional(), content: z.string().optional() }),
    logprobs: chatLogprobsSchema.nullable(),
    finish_reason: finishReasonSchema.nullable(),
    entropic_trace: traceSchema.optional(),
  })),
  usage: usageSchema.nullable().optional(),
  timings: timingsSchema.optional(),
  entropic: entropicSchema.optional(),
}).openapi("ChatCompletionChunk", {
  description: "timings and entropic come with the last chunk.",
});

export type ChatChunk = z.infer<typeof chatChunkSchema>;
