/** The command-line server on the real model, over real sockets, with the official client. */
import { assert, assertEquals } from "@std/assert";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import OpenAI from "openai";
import { REAL_MODEL } from "../support/real_model.ts";
import { startServer } from "../support/server_process.ts";
import { temporaryDirectory } from "../support/temporary_directory.ts";

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

Deno.test(
  { name: "serve --attention mass calibrates, prunes long contexts and keeps its bound", ignore },
  async () => {
    await using directory = await temporaryDirectory();
    // Elsewhere, so that the calibration does not come to lie beside the real one.
    const model = join(directory.path, "model.gguf");
    await symlink(REAL_MODEL ?? "", model);
    await using server = await startServer([
      ...["--model", model, "--context", "2048", "--attention", "mass"],
    ]);
    const words = ["north", "rain", "seven", "harbour", "letter", "glass", "evening"];
    const lines = Array.from(
      { length: 78 },
      (_, i) => `${i}. The ${words[i % 7]} and the ${words[(i * i) % 7]} of ${1700 + 3 * i}.`,
    );
    const ask = async (attention?: object) => {
      const response = await fetch(`${server.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          ...{ prompt: lines.join("\n"), max_tokens: 70, temperature: 0, ignore_eos: true },
          ...(attention && { entropic: { attention } }),
        }),
      });
      return (await response.json()).entropic.attention;
    };
    const told = await ask();
    assertEquals([told.policy, told.pruned_steps, told.steps], ["mass", 69, 69]);
    assert(told.share_read < 0.8 && told.share_macs < 0.9, JSON.stringify(told));
    assertEquals(await ask({ policy: "off" }), undefined);
    const { attention } = await (await fetch(`${server.url}/health`)).json();
    assertEquals([attention.policy, attention.shadows], ["mass", 1]);
    assert(attention.divergence < attention.divergence_bound);
  },
);
