/** `POST /tokenize` and `POST /detokenize`. */
import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import type { LanguageModel } from "../../language_model.ts";
import { RequestError } from "../../errors.ts";
import type { ServerEnv } from "../exchange.ts";
import { checkModel } from "../plan.ts";
import { checkLength, checkTokens, encodeMessages } from "../prompt.ts";
import { errorResponses } from "../schemas/responses.ts";
import {
  detokenizeBodySchema,
  detokenizeSchema,
  type TokenizeBody,
  tokenizeBodySchema,
  tokenizeSchema,
} from "../schemas/tokens.ts";
import type { Server } from "../server.ts";

const tokenizeRoute = createRoute({
  method: "post",
  path: "/tokenize",
  summary: "Text or messages to token ids",
  request: {
    body: { required: true, content: { "application/json": { schema: tokenizeBodySchema } } },
  },
  responses: {
    200: { description: "Ids", content: { "application/json": { schema: tokenizeSchema } } },
    ...errorResponses(400, 401, 404, 413, 415, 503),
  },
});

const detokenizeRoute = createRoute({
  method: "post",
  path: "/detokenize",
  summary: "Token ids to text, control tokens included",
  request: {
    body: { required: true, content: { "application/json": { schema: detokenizeBodySchema } } },
  },
  responses: {
    200: { description: "Text", content: { "application/json": { schema: detokenizeSchema } } },
    ...errorResponses(400, 401, 404, 413, 415, 503),
  },
});

export function addTokenRoutes(app: OpenAPIHono<ServerEnv>, server: Server): void {
  app.openapi(tokenizeRoute, (c) => {
    const { model } = server.slot;
    const body = c.req.valid("json");
    checkModel(model, body.model);
    const tokens = tokenize(model, body);
    const max_model_len = model.engine.info.maxSequenceTokens;
    return c.json({ tokens: [...tokens], count: tokens.length, max_model_len }, 200);
  });
  app.openapi(detokenizeRoute, (c) => {
    const { model } = server.slot;
    const body = c.req.valid("json");
    checkModel(model, body.model);
    checkTokens(model, "tokens", body.tokens);
    const text = model.tokenizer.decode(body.tokens, { special: true });
    return c.json({ prompt: text, content: text }, 200);
  });
}

function tokenize(model: LanguageModel, body: TokenizeBody): Uint32Array {
  const { prompt, content, messages } = body;
  const given = [prompt, content, messages].filter((field) => field != null).length;
  if (given !== 1) {
    throw new RequestError(
      `Cannot tokenize: current number of texts is ${given}; ` +
        "allowed is exactly one of prompt, content and messages",
      { code: given === 0 ? "missing_value" : "invalid_value" },
    );
  }
  if (messages != null) {
    return encodeMessages(model, messages, body.add_generation_prompt ?? true);
  }
  const addSpecial = body.add_special_tokens ?? body.add_special ?? prompt != null;
  const parseSpecial = body.parse_special ?? content != null;
  const text = prompt ?? content ?? "";
  checkLength(model, text.length);
  return model.tokenizer.encode(text, { addSpecial, parseSpecial });
}
