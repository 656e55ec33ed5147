/** The server on the real engine over a scripted backend: what both have to get right together. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { BackendError } from "../../core/errors.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import type { LocalEngineOptions } from "../../core/engine/engine_options.ts";
import type { LanguageModel } from "../../core/language_model.ts";
import { entropic } from "../../core/server/app.ts";
import { ByteTokenizer, chatml, END, VOCABULARY } from "../support/byte_tokenizer.ts";
import { ScriptedBackend, type ScriptedOptions } from "../support/scripted_backend.ts";
import {
  CHAT,
  chat,
  chatTexts,
  complete,
  COMPLETIONS,
  events,
  type Json,
  MESSAGES,
  post,
  stream,
} from "./requests.ts";

/** "!": no row of logits is usable after it. */
const POISON = 0x21;

function open(scripted: ScriptedOptions = {}, options: LocalEngineOptions = {}) {
  const backend = new ScriptedBackend({
    vocabularySize: VOCABULARY,
    endTokens: [END],
    ...scripted,
    limits: { kvBlocks: 256, contextLength: 512, topK: 32, ...scripted.limits },
  });
  const engine = new LocalEngine(backend, options);
  const model: LanguageModel = {
    id: "local",
    created: 0,
    engine,
    tokenizer: new ByteTokenizer(),
    template: chatml,
  };
  return { app: entropic({ model, maxChoices: 64 }), engine };
}

async function assertAllFree(engine: LocalEngine) {
  for (let tries = 0; tries < 100; tries++) {
    const { kvBlocksFree, kvBlocksTotal } = await engine.stats();
    if (kvBlocksFree === kvBlocksTotal) return;
    await new Promise((resolve) => setTimeout(resolve));
  }
  throw new Error("some KV blocks were never freed");
}

const question = (index: number) => [{ role: "user", content: `${index}: ${"x".repeat(index)}` }];

Deno.test("64 greedy streams of mixed lengths at once say what each says alone", async () => {
  const { app, engine } = open({ limits: { kvBlocks: 96 } });
  const fields = (index: number) => ({
    messages: question(index),
    temperature: 0,
    max_tokens: 1 + (index * 7) % 40,
    ignore_eos: true,
    logprobs: true,
  });
  const indices = Array.from({ length: 64 }, (_, index) => index);
  const together = await Promise.all(indices.map((index) => stream(app, CHAT, fields(index))));
  for (const index of indices) {
    const alone = await chat(app, fields(index));
    const [choice] = alone.choices;
    const chunks = together[index]!;
    assertEquals(chatTexts(chunks), [choice.message.content], `stream ${index}`);
    const scores = chunks.flatMap(({ choices }) => choices[0].logprobs?.content ?? []);
    assertEquals(scores, choice.logprobs.content);
    assertEquals(chunks.at(-1).choices[0].finish_reason, choice.finish_reason);
  }
  await assertAllFree(engine);
});

Deno.test("sampled choices are reproducible, differ, and do not depend on their neighbours", async () => {
  const { app } = open();
  const texts = async (fields: object) => {
    const { choices } = await chat(app, { seed: 11, max_tokens: 24, ignore_eos: true, ...fields });
    return choices.map(({ message }: Json) => message.content);
  };
  const four = await texts({ n: 4 });
  assertEquals(new Set(four).size, 4);
  const [again] = await Promise.all([texts({ n: 4 }), texts({ seed: 99, n: 8 }), chat(app)]);
  assertEquals(again, four);
  assertEquals(await texts({ seed: 13 }), [four[2]]);
});

Deno.test("a stop string ends both engine and text, with the same usage every time", async () => {
  const letters: ScriptedOptions["shape"] = (logits, history) => {
    logits.fill(-30);
    logits[97 + history.length % 26] = 30;
  };
  const { app, engine } = open({ shape: letters });
  const fields = { temperature: 0, max_tokens: 200, stop: "xyz", prompt: [97] };
  const whole = await complete(app, fields);
  assertEquals(whole.choices[0].text, "bcdefghijklmnopqrstuvw");
  assertEquals(whole.usage.completion_tokens, 25);
  const usage = { stream_options: { include_usage: true } };
  const chunks = await stream(app, COMPLETIONS, { ...fields, ...usage });
  assertEquals(chunks.map(({ choices }) => choices[0]?.text ?? "").join(""), whole.choices[0].text);
  assertEquals(chunks.at(-1).usage.completion_tokens, 25);
  await assertAllFree(engine);
});

Deno.test("an echoed prompt is scored, and the score does not depend on streaming", async () => {
  const { app } = open();
  const fields = { prompt: "Hello", echo: true, logprobs: 3, max_tokens: 0 };
  const { choices } = await complete(app, fields);
  const { tokens, token_logprobs } = choices[0].logprobs;
  assertEquals(tokens, ["<|bos|>", ..."Hello"]);
  assertEquals(token_logprobs[0], null);
  assert(token_logprobs.slice(1).every((logprob: number) => logprob < 0));
  const chunks = await stream(app, COMPLETIONS, fields);
  assertEquals(chunks[0].choices[0].logprobs, choices[0].logprobs);
});

Deno.test("a row of unusable logits fails its own request and no other", async () => {
  const { app, engine } = open({ poison: POISON });
  const [poisoned, fine] = await Promise.all([
    post(app, COMPLETIONS, { prompt: "bad!" }),
    post(app, COMPLETIONS, { prompt: "good", max_tokens: 8, logit_bias: { [POISON]: -100 } }),
  ]);
  assertEquals([poisoned.status, fine.status], [500, 200]);
  assertEquals((await poisoned.json()).error.type, "server_error");
  await fine.json();
  await assertAllFree(engine);
});

for (const phase of ["queued", "prefilling", "decoding"]) {
  Deno.test(`a client that leaves while ${phase} frees the engine's blocks`, async () => {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const stuck = phase === "decoding" ? 6 : 1;
    const { app, engine } = open({
      onForward: async (call) => {
        if (call !== stuck) return;
        reached.resolve();
        await gate.promise;
      },
    }, { maxRunning: phase === "queued" ? 1 : 8 });
    const client = new AbortController();
    const init = { signal: client.signal };
    const fields = { messages: question(100), n: 3, max_tokens: 100, ignore_eos: true };
    const whole = post(app, CHAT, fields, init);
    const streamed = await post(app, CHAT, { ...fields, stream: true }, init);
    await reached.promise;
    client.abort();
    gate.resolve();
    assertEquals((await whole).status, 499);
    await streamed.text();
    await assertAllFree(engine);
    assertEquals((await chat(app, { max_tokens: 1 })).object, "chat.completion");
  });
}

Deno.test("an engine that is disposed of ends its streams with an error and [DONE]", async () => {
  const { app, engine } = open();
  const fields = { messages: MESSAGES, stream: true, max_tokens: 300, ignore_eos: true };
  const response = await post(app, CHAT, fields);
  await engine.dispose();
  const last = events(await response.text()).at(-1);
  assertEquals(last.error.type, "service_unavailable_error");
  assertEquals((await post(app, CHAT, { messages: MESSAGES })).status, 500);
});

Deno.test("/health says failed and /metrics not ready once the engine is down for good", async () => {
  const onForward = () => {
    throw new BackendError("Cannot go on: the device is lost", { fatal: true });
  };
  const { app } = open({ onForward });
  assertEquals((await app.request("/health")).status, 200);
  assertEquals((await post(app, COMPLETIONS, { prompt: "Hi" })).status, 500);
  const health = await app.request("/health");
  const { status, error } = await health.json();
  assertEquals([health.status, status, error.code], [503, "failed", "backend_failed"]);
  const metrics = await app.request("/metrics");
  assertEquals(metrics.status, 200);
  assertStringIncludes(await metrics.text(), "\nentropic_ready 0\n");
});
