/** `POST /tokenize` and `POST /detokenize`, in the fields of vLLM and of llama.cpp. */
import { z } from "@hono/zod-openapi";
import { messagesSchema } from "./chat.ts";
import { boolean, string, tokenIds } from "./fields.ts";

const IDS = "an array of token ids";

export const tokenizeBodySchema = z.object({
  model: string().nullish(),
  prompt: string().nullish().openapi({ description: "vLLM's field for the text." }),
  content: string().nullish().openapi({ description: "llama.cpp's field for the text." }),
  messages: messagesSchema.nullish().openapi({ description: "Goes through the chat template." }),
  add_special_tokens: boolean().nullish().openapi({
    description: "With prompt: adds what the model puts around a text. Default true.",
  }),
  add_special: boolean().nullish().openapi({
    description: "The same with content. Default false.",
  }),
  parse_special: boolean().nullish().openapi({
    description: "Reads control tokens in the text. Default true with content, as in llama.cpp; " +
      "false with prompt, as /v1/completions reads it.",
  }),
  add_generation_prompt: boolean().nullish().openapi({
    description: "With messages: opens the assistant's turn. Default true.",
  }),
}).openapi("TokenizeRequest");

export type TokenizeBody = z.infer<typeof tokenizeBodySchema>;

export const tokenizeSchema = z.object({
  tokens: z.array(z.int()),
  count: z.int(),
  max_model_len: z.int(),
}).openapi("Tokens");

export const detokenizeBodySchema = z.object({
  model: string().nullish(),
  tokens: tokenIds(IDS),
}).openapi("DetokenizeRequest");

export const detokenizeSchema = z.object({
  prompt: z.string(),
  content: z.string().openapi({ description: "The same, under llama.cpp's name." }),
}).openapi("Text");
