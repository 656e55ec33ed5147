/**
 * The request fields that chat and text completions share. Fields this server does not know are
 * ignored, as OpenAI-compatible servers do; those whose neglect would change what the client gets
 * (tools, a response format, a grammar) are refused by name.
 */
import { z } from "@hono/zod-openapi";
import { entropicRequestSchema } from "./entropic.ts";
import {
  atMost,
  boolean,
  integer,
  isEmpty,
  number,
  string,
  tokenIds,
  unsupported,
} from "./fields.ts";

const INT32 = 2 ** 31 - 1;
const COUNT = "an integer of at least 0";
const STOP = "a non-empty string, or an array of up to 16 of them, each of at most 1000 characters";
const SEED = "an integer from -2^63 to 2^64 - 1";
const IDS = "an array of up to 1024 token ids";
const BIAS = "an object from token ids to numbers from -100 to 100";
const BIAS_VALUE = "a number from -100 to 100";

const stopString = string(STOP).min(1, { error: STOP }).max(1000, { error: STOP });

/** Checked up to the first bad entry: zod would gather an issue for each, however many there are. */
const logitBiasSchema = z.record(
  z.string(),
  z.custom<number>().openapi({ type: "number", minimum: -100, maximum: 100 }),
  { error: BIAS },
).superRefine((bias, context) => {
  for (const [key, value] of Object.entries(bias)) {
    const allowed = /^\d{1,10}$/.test(key) ? BIAS_VALUE : BIAS;
    if (allowed === BIAS_VALUE && isBias(value)) continue;
    return context.addIssue({ code: "custom", path: [key], message: allowed });
  }
});

function isBias(value: unknown): boolean {
  return typeof value === "number" && value >= -100 && value <= 100;
}

const generationShape = {
  model: string().nullish().openapi({
    description: "A name that /v1/models lists; the server's model where left out.",
  }),
  max_tokens: integer(0, Number.MAX_SAFE_INTEGER, COUNT).nullish().openapi({
    description: "Most tokens to generate. Prompt and completion must fit the context.",
  }),
  temperature: number(0, Number.MAX_VALUE, "a finite number of at least 0").nullish().openapi({
    description: "0 is greedy, 1 (the default) the model's own distribution.",
  }),
  top_p: number(Number.MIN_VALUE, 1, "a number above 0 and at most 1").nullish().openapi({
    description: "Keeps the smallest set of tokens with this probability.",
  }),
  top_k: integer(-1, INT32, "an integer of at least -1, where -1 and 0 keep all tokens").nullish()
    .openapi({ description: "Keeps the k most likely tokens; 0 (the default) and -1 keep all." }),
  min_p: number(0, 1, "a number from 0 to 1").nullish().openapi({
    description: "Drops tokens less likely than this share of the most likely one.",
  }),
  n: integer(1, INT32, "an integer of at least 1").nullish().openapi({
    description: "Choices a prompt. Choice i uses the seed plus i.",
  }),
  seed: number(-(2 ** 63), 2 ** 64 - 2 ** 11, SEED).refine(Number.isInteger, { error: SEED })
    .nullish().openapi({
      type: ["integer", "null"],
      description:
        "The same seed gives the same tokens. Negative seeds count from 2^64 down; those " +
        "beyond 2^53 are rounded to a double first, as JSON numbers in JavaScript are.",
    }),
  stop: z.union([stopString, atMost(16, z.array(stopString), STOP)], { error: STOP })
    .nullish().openapi({ description: "Text that ends the completion and is left out of it." }),
  stop_token_ids: tokenIds(IDS).max(1024, { error: IDS }).nullish(),
  min_tokens: integer(0, INT32, COUNT).nullish().openapi({
    description: "No end token is drawn before this many.",
  }),
  ignore_eos: boolean().nullish().openapi({ description: "Goes on past the end tokens." }),
  presence_penalty: number(-2, 2, "a number from -2 to 2").nullish(),
  frequency_penalty: number(-2, 2, "a number from -2 to 2").nullish(),
  repetition_penalty: number(0.01, 100, "a number from 0.01 to 100").nullish(),
  logit_bias: logitBiasSchema.nullish(),
  stream: boolean().nullish(),
  stream_options: z.object({ include_usage: boolean().nullish() }, { error: "an object" })
    .nullish().openapi({ description: "Only with stream." }),
  priority: integer(-INT32, INT32, "an integer").nullish().openapi({
    description: "Higher runs earlier under scheduling policies that look at it.",
  }),
  user: string().nullish(),
  entropic: entropicRequestSchema.nullish(),
};

const FORMAT = "leave it out: the model's text is not constrained";

/** Ways to constrain the text, from OpenAI, vLLM and llama.cpp. */
const constraintShape = {
  response_format: unsupported(
    "Only the type text.",
    (value) =>
      typeof value === "object" && value !== null && "type" in value && value.type === "text",
    "allowed is the type text",
  ),
  grammar: unsupported("llama.cpp's grammar.", isEmpty, FORMAT),
  json_schema: unsupported("llama.cpp's JSON schema.", isEmpty, FORMAT),
  structured_outputs: unsupported("vLLM's constraints.", isEmpty, FORMAT),
  guided_json: unsupported("vLLM's constraints.", isEmpty, FORMAT),
  guided_regex: unsupported("vLLM's constraints.", isEmpty, FORMAT),
  guided_choice: unsupported("vLLM's constraints.", isEmpty, FORMAT),
  guided_grammar: unsupported("vLLM's constraints.", isEmpty, FORMAT),
};

export const generationSchema = z.object({ ...generationShape, ...constraintShape });

/** What both endpoints have in common, once parsed. */
export type GenerationBody = z.infer<typeof generationSchema>;
