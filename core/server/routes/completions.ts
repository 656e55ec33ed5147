/** `POST /v1/completions`. */
import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import { respond } from "../answer.ts";
import { collectCompletion, completionChunks } from "../completion_reply.ts";
import type { ServerEnv } from "../exchange.ts";
import { checkChoices, checkModel, planRequests, stopStrings } from "../plan.ts";
import { encodeTextPrompts, promptList } from "../prompt.ts";
import { refusal } from "../refusal.ts";
import { newReply } from "../reply.ts";
import { completionBodySchema, completionSchema } from "../schemas/completions.ts";
import { errorResponses } from "../schemas/responses.ts";
import type { Server } from "../server.ts";

/** OpenAI's `max_tokens` of a text completion. */
const DEFAULT_MAX_TOKENS = 16;

const route = createRoute({
  method: "post",
  path: "/v1/completions",
  summary: "Continue a text",
  request: {
    body: { required: true, content: { "application/json": { schema: completionBodySchema } } },
  },
  responses: {
    200: {
      description: "The completion, whole or in chunks that end with [DONE]",
      content: {
        "application/json": { schema: completionSchema },
        "text/event-stream": { schema: completionSchema },
      },
    },
    ...errorResponses(400, 401, 404, 413, 415, 500, 503),
  },
});

export function addCompletionsRoute(app: OpenAPIHono<ServerEnv>, server: Server): void {
  app.openapi(route, (c) => {
    const { model } = server.slot;
    const body = c.req.valid("json");
    checkModel(model, body.model);
    const n = body.n ?? 1;
    if (body.best_of != null && body.best_of !== n) {
      throw refusal("best_of", body.best_of, `null or ${n}, the value of n`);
    }
    checkChoices(body, promptList(body.prompt).length, server.settings.maxChoices);
    const prompts = encodeTextPrompts(model, body.prompt);
    const logprobs = body.logprobs != null;
    const requests = planRequests(model, body, prompts.map(({ tokens }) => tokens), {
      maxTokens: { param: "max_tokens", value: body.max_tokens ?? undefined },
      defaultMaxTokens: DEFAULT_MAX_TOKENS,
      topLogprobs: { param: "logprobs", value: body.logprobs ?? 0 },
      promptLogprobs: logprobs && body.echo === true,
    });
    const reply = newReply(model, "cmpl-", {
      choices: requests.length,
      choicesPerPrompt: n,
      logprobs,
      includeUsage: body.stream_options?.include_usage ?? false,
      trace: body.entropic?.trace ?? false,
    });
    const echoes = body.echo === true
      ? prompts.flatMap((prompt) => Array.from({ length: n }, () => prompt))
      : [];
    return respond(server, c.get("exchange"), {
      model,
      requests,
      stop: stopStrings(body),
      stream: body.stream ?? false,
      chunks: (pieces) => completionChunks(reply, echoes, pieces),
      collect: (pieces) => collectCompletion(reply, echoes, pieces),
    });
  });
}
