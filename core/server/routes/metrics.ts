/** `GET /metrics`, for Prometheus. */
import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { ServerEnv } from "../exchange.ts";
import { PROMETHEUS_CONTENT_TYPE } from "../prometheus.ts";
import { errorResponses } from "../schemas/responses.ts";
import type { Server } from "../server.ts";

const route = createRoute({
  method: "get",
  path: "/metrics",
  summary: "Counters, gauges and latencies in Prometheus' text format",
  responses: {
    200: { description: "The page", content: { "text/plain": { schema: z.string() } } },
    ...errorResponses(401),
  },
});

export function addMetricsRoute(app: OpenAPIHono<ServerEnv>, server: Server): void {
  app.openapi(route, async (c) => {
    const { state } = server.slot;
    const page = await server.metrics.render(state.status === "ready" ? state.model : undefined);
    return c.text(page, 200, { "content-type": PROMETHEUS_CONTENT_TYPE });
  });
}
