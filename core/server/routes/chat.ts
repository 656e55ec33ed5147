/** `POST /v1/chat/completions`. */
import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import type { LanguageModel } from "../../language_model.ts";
import { respond } from "../answer.ts";
import { chatChunks, collectChat } from "../chat_reply.ts";
import type { ServerEnv } from "../exchange.ts";
import { checkChoices, checkModel, planRequests, stopStrings } from "../plan.ts";
import { encodeMessages } from "../prompt.ts";
import { refusal } from "../refusal.ts";
import { newReply } from "../reply.ts";
import {
  type ChatBody,
  chatBodySchema,
  chatChunkSchema,
  chatCompletionSchema,
} from "../schemas/chat.ts";
import { errorResponses } from "../schemas/responses.ts";
import type { Server } from "../server.ts";

const route = createRoute({
  method: "post",
  path: "/v1/chat/completions",
  summary: "Answer a conversation",
  request: {
    body: { required: true, content: { "application/json": { schema: chatBodySchema } } },
  },
  responses: {
    200: {
      description: "The answer, whole or in chunks that end with [DONE]",
      content: {
        "application/json": { schema: chatCompletionSchema },
        "text/event-stream": { schema: chatChunkSchema },
      },
    },
    ...errorResponses(400, 401, 404, 413, 415, 500, 503),
  },
});

export function addChatRoute(app: OpenAPIHono<ServerEnv>, server: Server): void {
  app.openapi(route, (c) => {
    const { model } = server.slot;
    const body = c.req.valid("json");
    checkModel(model, body.model);
    const requests = plan(server, model, body);
    const reply = newReply(model, "chatcmpl-", {
      choices: requests.length,
      choicesPerPrompt: requests.length,
      logprobs: body.logprobs ?? false,
      includeUsage: body.stream_options?.include_usage ?? false,
      trace: body.entropic?.trace ?? false,
    });
    return respond(server, c.get("exchange"), {
      model,
      requests,
      stop: stopStrings(body),
      stream: body.stream ?? false,
      chunks: (pieces) => chatChunks(reply, pieces),
      collect: (pieces) => collectChat(reply, pieces),
    });
  });
}

function plan(server: Server, model: LanguageModel, body: ChatBody) {
  const topLogprobs = body.top_logprobs ?? 0;
  if (topLogprobs > 0 && body.logprobs !== true) {
    throw refusal("top_logprobs", topLogprobs, "0 unless logprobs is true");
  }
  checkChoices(body, 1, server.settings.maxChoices);
  const maxTokens = body.max_completion_tokens != null
    ? { param: "max_completion_tokens", value: body.max_completion_tokens }
    : { param: "max_tokens", value: body.max_tokens ?? undefined };
  return planRequests(model, body, [encodeMessages(model, body.messages)], {
    maxTokens,
    defaultMaxTokens: Infinity,
    topLogprobs: { param: "top_logprobs", value: topLogprobs },
    promptLogprobs: false,
  });
}
