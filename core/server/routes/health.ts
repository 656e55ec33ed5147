/** `GET /health`: 200 once requests can be answered, 503 before, with the reason. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { AttentionInfo, AttentionState } from "../../engine/engine.ts";
import { ATTENTION_POLICIES } from "../../entropic/pruning.ts";
import type { LanguageModel } from "../../language_model.ts";
import { toApiError } from "../api_error.ts";
import type { ServerEnv } from "../exchange.ts";
import { errorSchema } from "../schemas/responses.ts";
import type { Server } from "../server.ts";

const healthSchema = z.object({
  status: z.literal("ok"),
  model: z.string(),
  backend: z.object({
    kind: z.string(),
    variant: z.string(),
    threads: z.int(),
    weight_bytes: z.int(),
    kv_bytes: z.int(),
    rebuilds: z.int().openapi({ description: "Times that a lost backend was replaced." }),
  }),
  policy: z.string(),
  attention: z.object({
    policy: z.enum(ATTENTION_POLICIES).openapi({
      description:
        "Of requests that name none; off where pruning cannot run or has failed its bound.",
    }),
    reason: z.string().optional().openapi({ description: "Why a policy is not in force." }),
    allowed: z.array(z.enum(ATTENTION_POLICIES)),
    least_mass: z.number(),
    least_blocks: z.int(),
    dense_below: z.int().openapi({ description: "Contexts of fewer tokens stay dense." }),
    divergence: z.number().openapi({ description: "Nats of KL from dense, mean of the shadows." }),
    divergence_bound: z.number(),
    shadows: z.int(),
    held: z.array(z.object({ from: z.int(), mass: z.number(), threshold: z.number() })).openapi({
      description: "What the controller holds at contexts from so many tokens on.",
    }),
  }),
  entropy_floor: z.number(),
  max_model_len: z.int(),
  engine: z.object({
    waiting: z.int(),
    running: z.int(),
    preempted: z.int(),
    kv_blocks_free: z.int(),
    kv_blocks_total: z.int(),
  }),
}).openapi("Health");

const notReadySchema = errorSchema.extend({ status: z.enum(["loading", "failed"]) })
  .openapi("NotReady");

const route = createRoute({
  method: "get",
  path: "/health",
  summary: "Whether the server can answer",
  responses: {
    200: { description: "Ready", content: { "application/json": { schema: healthSchema } } },
    503: {
      description: "Loading, or the model or its engine failed",
      content: { "application/json": { schema: notReadySchema } },
    },
  },
});

export function addHealthRoute(app: OpenAPIHono<ServerEnv>, server: Server): void {
  app.openapi(route, async (c) => {
    const { status } = server.slot.state;
    try {
      return c.json(await describe(server.slot.model), 200);
    } catch (error) {
      const failure = toApiError(error);
      const body = { status: status === "loading" ? status : "failed" as const };
      return c.json({ ...body, ...failure.toBody() }, 503, { ...failure.headers });
    }
  });
}

async function describe({ id, engine }: LanguageModel) {
  // First, for an engine in a Worker tells then which backend it has by now.
  const stats = await engine.stats();
  const { backend, policy, entropyFloor, maxSequenceTokens } = engine.info;
  return {
    status: "ok" as const,
    model: id,
    backend: {
      kind: backend.kind,
      variant: backend.variant,
      threads: backend.threads,
      weight_bytes: backend.weightBytes,
      kv_bytes: backend.kvBytes,
      rebuilds: stats.rebuilds,
    },
    policy,
    attention: describeAttention(engine.info.attention, stats.attention),
    entropy_floor: entropyFloor,
    max_model_len: maxSequenceTokens,
    engine: {
      waiting: stats.waiting,
      running: stats.running,
      preempted: stats.preempted,
      kv_blocks_free: stats.kvBlocksFree,
      kv_blocks_total: stats.kvBlocksTotal,
    },
  };
}

function describeAttention({ allowed, floor, denseBelow }: AttentionInfo, state: AttentionState) {
  const { policy, reason, divergence, bound, shadows, lengths } = state;
  return {
    policy,
    ...(reason !== undefined && { reason }),
    allowed: [...allowed],
    least_mass: floor.mass,
    least_blocks: floor.minBlocks,
    dense_below: denseBelow,
    divergence,
    divergence_bound: bound,
    shadows,
    held: lengths.map(({ length, mass, threshold }) => ({ from: length, mass, threshold })),
  };
}
