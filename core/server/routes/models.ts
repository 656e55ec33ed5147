/** `GET /v1/models` and `GET /v1/models/{model}`. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { LanguageModel } from "../../language_model.ts";
import type { ServerEnv } from "../exchange.ts";
import { checkModel } from "../plan.ts";
import { errorResponses } from "../schemas/responses.ts";
import type { Server } from "../server.ts";

const modelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.int(),
  owned_by: z.string(),
  max_model_len: z.int().openapi({ description: "Prompt plus completion, in tokens." }),
}).openapi("Model");

const listRoute = createRoute({
  method: "get",
  path: "/v1/models",
  summary: "List the models",
  responses: {
    200: {
      description: "The model that is served",
      content: {
        "application/json": {
          schema: z.object({ object: z.literal("list"), data: z.array(modelSchema) }),
        },
      },
    },
    ...errorResponses(401, 503),
  },
});

const oneRoute = createRoute({
  method: "get",
  path: "/v1/models/{model}",
  summary: "Describe a model",
  request: { params: z.object({ model: z.string() }) },
  responses: {
    200: { description: "The model", content: { "application/json": { schema: modelSchema } } },
    ...errorResponses(401, 404, 503),
  },
});

export function addModelRoutes(app: OpenAPIHono<ServerEnv>, server: Server): void {
  app.openapi(
    listRoute,
    (c) => c.json({ object: "list" as const, data: [describe(server.slot.model)] }, 200),
  );
  app.openapi(oneRoute, (c) => {
    const { model } = server.slot;
    checkModel(model, c.req.valid("param").model);
    return c.json(describe(model), 200);
  });
}

function describe({ id, created, engine }: LanguageModel) {
  return {
    id,
    object: "model" as const,
    created,
    owned_by: "entropic-time",
    max_model_len: engine.info.maxSequenceTokens,
  };
}
