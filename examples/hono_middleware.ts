// A local model inside an app of your own: its routes beside yours, and called from one of them.
//   deno run -A examples/hono_middleware.ts
import { Hono } from "hono";
import { entropic, loadModel } from "../mod.ts";

const model = await loadModel({ worker: true });
const ai = entropic({ model, apiKeys: ["secret"] });

const app = new Hono();
app.get("/", (c) => c.text("An app with a model inside"));
app.route("/ai", ai); // POST /ai/v1/chat/completions

app.get("/haiku/:topic", async (c) => {
  const answer = await ai.request("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer secret", "content-type": "application/json" },
    body: JSON.stringify({
      messages: [{ role: "user", content: `A haiku about ${c.req.param("topic")}` }],
      max_tokens: 40,
    }),
  });
  const { choices } = await answer.json();
  return c.text(choices[0].message.content);
});

Deno.serve({ port: 8000 }, app.fetch);
