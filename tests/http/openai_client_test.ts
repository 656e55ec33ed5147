import { checkClients } from "./openai_client.ts";

Deno.test({
  name: "the openai client and the AI SDK talk to the server over a socket",
  // The clients keep their connections open for the next request.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn(t) {
    await checkClients((name, check) => t.step(name, check));
  },
});
