/** The command-line server on the real model, over real sockets, with the official client. */
import { assert, assertEquals } from "@std/assert";
import OpenAI from "openai";
import { REAL_MODEL } from "../support/real_model.ts";
import { startServer } from "../support/server_process.ts";

const ignore = REAL_MODEL === undefined;
const MODEL = "smollm2-135m-instruct.q4_1";

/** 64 prompts and lengths, all different. */
const REQUESTS = Array.from({ length: 64 }, (_, i) => ({
  model: MODEL,
  prompt: `${"The story so far. ".repeat(i % 7)}Chapter ${i}: ${i % 2 ? "The sea" : "A number"}`,
  max_tokens: 2 + (i * 7) % 23,
  temperature: 0,
}));

async function streamed(client: OpenAI, asked: typeof REQUESTS[number]): Promise<string> {
  let text = "";
  let reason: string | null | undefined;
  for await (
    const { choices: [choice] } of await client.completions.create({ ...asked, stream: true })
  ) {
    text += choice?.text ?? "";
    reason = choice?.finish_reason ?? reason;
  }
  assert(reason === "stop" || reason === "length", `finish_reason is ${reason}`);
  return text;
}

Deno.test(
  { name: "serve: 64 streams at once end properly, each as if it ran alone", ignore },
  async () => {
    await using server = await startServer(["--context", "2048"]);
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const texts = await Promise.all(REQUESTS.map((asked) => streamed(client, asked)));
    for (const [i, asked] of REQUESTS.entries()) {
      const { choices: [choice] } = await client.completions.create(asked);
      assertEquals(texts[i], choice?.text, asked.prompt);
    }
    const health = await (await fetch(`${server.url}/health`)).json();
    assertEquals(health.engine.kv_blocks_free, health.engine.kv_blocks_total);
  },
);

Deno.test({ name: "serve: a seed gives the same text after a restart", ignore }, async () => {
  const texts: (string | undefined)[] = [];
  for (const flags of [[], ["--no-worker"]]) {
    await using server = await startServer(["--context", "512", ...flags]);
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const { choices } = await client.chat.completions.create({
      model: MODEL,
      messages: [{ role: "user", content: "Tell me a story" }],
      max_completion_tokens: 40,
      seed: 7,
      n: 2,
    });
    assert(choices[0]?.message.content !== choices[1]?.message.content);
    texts.push(...choices.map(({ message }) => message.content ?? undefined));
  }
  assertEquals(texts.slice(0, 2), texts.slice(2));
});

Deno.test(
  { name: "serve: a signal lets running answers finish, then the process ends", ignore },
  async () => {
    const server = await startServer(["--context", "512"]);
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const asked = { model: MODEL, prompt: "Once upon a time", max_tokens: 60, temperature: 0 };
    const stream = await client.completions.create({ ...asked, stream: true });
    let pieces = 0;
    let reason: string | null | undefined;
    for await (const { choices: [choice] } of stream) {
      if (pieces++ === 0) server.interrupt();
      reason = choice?.finish_reason ?? reason;
    }
    assert(reason === "stop" || reason === "length");
    assertEquals(await server.exitCode, 0);
  },
);
