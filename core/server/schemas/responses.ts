/** The parts that responses share. */
import { z } from "@hono/zod-openapi";

export const errorSchema = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
}).openapi("Error");

export const usageSchema = z.object({
  prompt_tokens: z.int().openapi({ description: "Each prompt once, however many choices." }),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  prompt_tokens_details: z.object({
    cached_tokens: z.int().openapi({ description: "Found in the prefix cache." }),
  }),
}).openapi("Usage");

export const timingsSchema = z.object({
  queued_ms: z.number(),
  cache_n: z.int().openapi({ description: "Prompt tokens from the prefix cache." }),
  prompt_n: z.int().openapi({ description: "Prompt tokens computed." }),
  prompt_ms: z.number(),
  prompt_per_second: z.number(),
  predicted_n: z.int(),
  predicted_ms: z.number(),
  predicted_per_second: z.number(),
}).openapi("Timings", {
  description: "In llama.cpp's terms. Choices run side by side: tokens are summed over them, " +
    "milliseconds are the longest.",
});

export const finishReasonSchema = z.enum(["stop", "length"]);

export type Usage = z.infer<typeof usageSchema>;
export type Timings = z.infer<typeof timingsSchema>;

/** OpenAPI entries for the failures that an endpoint may answer with. */
export function errorResponses<Status extends number>(...statuses: readonly Status[]) {
  const entry = { description: "", content: { "application/json": { schema: errorSchema } } };
  return Object.fromEntries(
    statuses.map((status) => [status, { ...entry, description: DESCRIPTIONS[status] ?? "Error" }]),
  );
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: "A bad value: the message names it and says what is allowed",
  401: "A missing or wrong API key",
  404: "An unknown model",
  413: "The body is over the limit",
  415: "A compressed body, or one that is not JSON",
  500: "The engine failed",
  503: "Loading or overloaded; try again after Retry-After seconds",
};
