/** The HTTP face: an OpenAI-compatible Hono app to serve alone or to mount in another. */
import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context, MiddlewareHandler } from "hono";
import { every } from "hono/combine";
import { cors } from "hono/cors";
import { methodNotAllowed } from "hono/method-not-allowed";
import { requestId } from "hono/request-id";
import { ApiError, toApiError } from "./api_error.ts";
import { requireKey } from "./auth.ts";
import { jsonBody, limitBody } from "./body.ts";
import { exchanges, type ServerEnv } from "./exchange.ts";
import { ServerMetrics } from "./metrics.ts";
import { ModelSlot, type ModelSource } from "./model_slot.ts";
import { type CorsOptions, type EntropicOptions, isOptions, withDefaults } from "./options.ts";
import { addChatRoute } from "./routes/chat.ts";
import { addCompletionsRoute } from "./routes/completions.ts";
import { addHealthRoute } from "./routes/health.ts";
import { addMetricsRoute } from "./routes/metrics.ts";
import { addModelRoutes } from "./routes/models.ts";
import { addTokenRoutes } from "./routes/tokens.ts";
import { toRequestError } from "./validation.ts";

/** Open to clients without a key: probes have none, and the description holds no secret. */
const PUBLIC = ["/health", "/openapi.json"];
const GUARDED = ["/metrics", "/v1/models", "/v1/models/:model"];
const POSTED = ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"];

/**
 * Serves a model over HTTP as OpenAI does.
 *
 * @param model A model, one that is still loading, a function that loads it when the first request
 * comes, or options with any of these as `model`.
 * @returns An app with routes of its own only: mounting it changes no other route.
 *
 * @example
 * ```ts
 * const app = new Hono();
 * app.route("/", entropic(model));
 * ```
 */
export function entropic(model: ModelSource | EntropicOptions): OpenAPIHono<ServerEnv> {
  const options = isOptions(model) ? model : { model };
  const settings = withDefaults(options);
  const server = { settings, slot: new ModelSlot(settings.model), metrics: new ServerMetrics() };
  const app = new OpenAPIHono<ServerEnv>({
    async defaultHook(result, c) {
      if (result.success) return;
      throw toRequestError(result.error, result.target === "json" ? await c.req.json() : undefined);
    },
  });

  const front = (route: string) =>
    every(
      requestId(),
      exchanges(route, server.metrics, options.logger),
      ...settings.cors === false ? [] : [cors(exposing(settings.cors))],
    ) as MiddlewareHandler<ServerEnv>;
  for (const path of [...PUBLIC, ...GUARDED, ...POSTED]) {
    app.use(path, front(path), methodNotAllowed({ app, onMethodNotAllowed }));
  }
  if (options.apiKeys !== undefined) {
    const guard = requireKey(options.apiKeys);
    for (const path of [...GUARDED, ...POSTED]) app.use(path, guard);
  }
  for (const path of POSTED) app.on("POST", path, limitBody(settings.bodyLimit), jsonBody);

  addChatRoute(app, server);
  addCompletionsRoute(app, server);
  addModelRoutes(app, server);
  addTokenRoutes(app, server);
  addHealthRoute(app, server);
  addMetricsRoute(app, server);
  app.doc31("/openapi.json", { openapi: "3.1.0", info: INFO });

  app.onError((error) => toApiError(error).toResponse());
  // Only when served alone: mounted, unknown routes are the other app's.
  const unknown = front("other");
  app.notFound(async (c) => {
    const answer = notFound(c);
    if (c.get("exchange") !== undefined) return answer;
    const early = await unknown(c, () => {
      c.res = answer;
      return Promise.resolve();
    });
    return early ?? c.res;
  });
  return app;
}

const INFO = {
  title: "entropic-time",
  version: "1",
  description: "An OpenAI-compatible API. Unknown request fields are ignored, null is the default.",
};

/** Lets pages read what helps them to retry and to report. */
function exposing(options: CorsOptions): CorsOptions {
  const exposeHeaders = [...options.exposeHeaders ?? [], "x-request-id", "retry-after"];
  return { ...options, exposeHeaders };
}

function notFound(c: Context): Response {
  const message = `Cannot ${c.req.method} ${c.req.path}: there is no such route`;
  return new ApiError(404, message, { code: "not_found" }).toResponse();
}

function onMethodNotAllowed(c: Context, methods: readonly string[]): Response {
  const allow = methods.join(", ");
  const message = `Cannot ${c.req.method} ${c.req.path}: allowed is ${allow}`;
  return new ApiError(405, message, { code: "method_not_allowed", headers: { allow } })
    .toResponse();
}
