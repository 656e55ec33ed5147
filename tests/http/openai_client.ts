/**
 * What people's own clients see over a socket: the official `openai` client and the AI SDK. Runs as
 * a Deno test and, by itself, as a script under any runtime; the model is scripted.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { serve } from "../../core/host/serve/serve.ts";
import { entropic } from "../../core/server/app.ts";
// By its path: only Deno knows the import map.
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { type FakeModel, fakeModel, say, sayTheSeed } from "../support/fake_engine.ts";

const KEY = "test-key";
const messages = [{ role: "user" as const, content: "Hi" }];

interface Session {
  readonly client: OpenAI;
  readonly model: FakeModel;
  readonly baseURL: string;
}

type Check = (session: Session) => Promise<void>;

async function chatWhole({ client }: Session) {
  const answer = await client.chat.completions.create({ model: "fake", messages });
  assertEquals(answer.choices[0]?.message.content, "Hello, world");
  assertEquals(answer.choices[0]?.finish_reason, "stop");
  assertEquals(answer.usage?.completion_tokens, 12);
}

async function chatStreamed({ client }: Session) {
  const stream = await client.chat.completions.create({
    model: "fake",
    messages,
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  let total: number | undefined;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    total = chunk.usage?.total_tokens ?? total;
  }
  assertEquals(text, "Hello, world");
  assertEquals(total, "?user\nHi?\n?assistant\n".length + 12);
}

async function chatAccumulated({ client }: Session) {
  const runner = client.chat.completions.stream({ model: "fake", messages, n: 2, logprobs: true });
  const answer = await runner.finalChatCompletion();
  assertEquals(answer.choices.map(({ message }) => message.content), [
    "Hello, world",
    "Hello, world",
  ]);
  assertEquals(answer.choices[0]?.logprobs?.content?.length, 12);
}

async function completions({ client }: Session) {
  const whole = await client.completions.create({ model: "fake", prompt: ["a", "b"], echo: true });
  assertEquals(whole.choices.map(({ text }) => text), ["aHello, world", "bHello, world"]);
  let text = "";
  const stream = await client.completions.create({ model: "fake", prompt: [97], stream: true });
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? "";
  assertEquals(text, "Hello, world");
}

async function models({ client }: Session) {
  const { data } = await client.models.list();
  assertEquals(data.map(({ id }) => id), ["fake"]);
  assertEquals((await client.models.retrieve("fake")).id, "fake");
  await assertRejects(() => client.models.retrieve("gpt/4"), OpenAI.NotFoundError);
}

async function errors({ client, baseURL }: Session) {
  const create = (fields: object) =>
    client.chat.completions.create({ model: "fake", messages, ...fields });
  const refused = await assertRejects(() => create({ temperature: -1 }), OpenAI.BadRequestError);
  assertEquals([refused.param, refused.code], ["temperature", "invalid_value"]);
  await assertRejects(() => create({ model: "gpt-4" }), OpenAI.NotFoundError);
  const stranger = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
  await assertRejects(() => stranger.models.list(), OpenAI.AuthenticationError);
  await chatWhole({ client } as Session);
}

async function disconnect({ client, model }: Session) {
  const stream = await client.chat.completions.create({
    model: "fake",
    messages: [{ role: "user", content: "stall" }],
    stream: true,
    n: 3,
  });
  for await (const chunk of stream) {
    assertEquals(chunk.choices[0]?.delta.role, "assistant");
    break;
  }
  await freed(model);
  const leaving = new AbortController();
  const whole = client.chat.completions.create({
    model: "fake",
    messages: [{ role: "user", content: "stall" }],
    n: 3,
  }, { signal: leaving.signal });
  await until(() => model.engine.live === 3);
  leaving.abort();
  await assertRejects(() => whole, OpenAI.APIUserAbortError);
  await freed(model);
}

async function manyAtOnce({ client }: Session) {
  const seeds = Array.from({ length: 64 }, (_, seed) => seed);
  const texts = await Promise.all(seeds.map(async (seed) => {
    const content = "x".repeat(seed);
    const runner = client.chat.completions.stream({
      model: "fake",
      messages: [{ role: "system", content: "seed" }, { role: "user", content }],
      seed,
    });
    return await runner.finalContent();
  }));
  assertEquals(texts, seeds.map((seed) => `seed ${seed}`));
}

async function aiSdk({ baseURL }: Session) {
  const provider = createOpenAICompatible({
    name: "entropic",
    baseURL,
    apiKey: KEY,
    includeUsage: true,
  });
  const model = provider("fake");
  const whole = await generateText({ model, prompt: "Hi" });
  assertEquals([whole.text, whole.finishReason], ["Hello, world", "stop"]);
  const streamed = streamText({ model, prompt: "Hi" });
  let text = "";
  for await (const part of streamed.textStream) text += part;
  assertEquals(text, "Hello, world");
  assertEquals((await streamed.usage).outputTokens, 12);
}

async function freed(model: FakeModel) {
  await until(() => model.engine.live === 0);
}

/** Waits for the server's side of a connection to notice. */
async function until(condition: () => boolean) {
  for (let tries = 0; !condition(); tries++) {
    assert(tries < 1000, "it did not happen within 10 s");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Stalls, tells its seed, or says hello, as the prompt's text asks. */
function play(request: Parameters<typeof sayTheSeed>[0]) {
  const text = String.fromCharCode(...Array.from(request.prompt));
  if (text.includes("stall")) {
    return { ...say("never"), before: () => new Promise<void>(() => {}) };
  }
  return text.includes("seed") ? sayTheSeed(request) : say("Hello, world");
}

const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ["openai: a whole chat", chatWhole],
  ["openai: a streamed chat with usage", chatStreamed],
  ["openai: a stream of two choices, accumulated", chatAccumulated],
  ["openai: completions", completions],
  ["openai: models", models],
  ["openai: errors as typed exceptions", errors],
  ["openai: a client that leaves frees its sequences", disconnect],
  ["openai: 64 streams at once", manyAtOnce],
  ["ai-sdk: whole and streamed text", aiSdk],
];

/** Serves the scripted model on this runtime and runs every check, each by way of `step`. */
export async function checkClients(
  step: (name: string, check: () => Promise<void>) => Promise<unknown>,
): Promise<void> {
  const model = fakeModel({ play });
  const app = entropic({ model, apiKeys: [KEY] });
  const server = await serve(app, { port: 0, shutdownSeconds: 1 });
  const baseURL = `${server.url}/v1`;
  const client = new OpenAI({ baseURL, apiKey: KEY, maxRetries: 0, dangerouslyAllowBrowser: true });
  try {
    for (const [name, check] of CHECKS) await step(name, () => check({ client, model, baseURL }));
  } finally {
    await server.stop();
  }
}

if (import.meta.main) {
  let failed = 0;
  await checkClients(async (name, check) => {
    try {
      await check();
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.error(`FAILED ${name}`, error);
    }
  });
  console.log(`${CHECKS.length - failed} passed, ${failed} failed`);
  if (failed > 0) throw new Error(`${failed} client checks failed`);
}
