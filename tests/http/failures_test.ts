/** Failures of the engine and of clients, in every phase: typed errors, and nothing left behind. */
import { assert, assertEquals } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import type { AccessEntry } from "../../core/server/exchange.ts";
import { BackendError } from "../../core/errors.ts";
import { fakeModel, say, type Script } from "../support/fake_engine.ts";
import {
  CHAT,
  chat,
  chatTexts,
  COMPLETIONS,
  events,
  expectError,
  type Json,
  MESSAGES,
  post,
} from "./requests.ts";

const settle = () => new Promise((resolve) => setTimeout(resolve));

/** Says the text, but never gets past the given token. */
function stuckAt(position: number): Script {
  return {
    ...say("Hello, world"),
    before: (reached) => reached === position ? new Promise(() => {}) : undefined,
  };
}

Deno.test("an error of the engine is a typed 500, and the next request succeeds", async () => {
  const failure = new BackendError("Cannot sample: the logits are not finite", { fatal: false });
  let fail = true;
  const model = fakeModel({ play: () => fail ? { tokens: [72], failure } : say("fine") });
  const app = entropic(model);
  const response = await post(app, CHAT, { messages: MESSAGES });
  fail = false;
  await expectError(app, response, { status: 500, code: "backend_failed", says: ["not finite"] });
  assertEquals(model.engine.live, 0);
});

Deno.test("an unknown error tells the client nothing and the log everything", async () => {
  const log: AccessEntry[] = [];
  const failure = new TypeError("secret path /srv/model");
  const app = entropic({
    model: fakeModel({ play: () => ({ tokens: [], failure }) }),
    logger: (entry) => void log.push(entry),
  });
  const response = await post(app, CHAT, { messages: MESSAGES });
  assertEquals(response.status, 500);
  assert(!(await response.text()).includes("secret"));
  assertEquals(log[0]?.error, "secret path /srv/model");
  assert(log[0]?.stack?.includes("failures_test"));
});

Deno.test("an error after the first event ends the stream with an error event and [DONE]", async () => {
  const failure = new BackendError("Cannot go on: the worker died", { fatal: true });
  const log: AccessEntry[] = [];
  const model = fakeModel({ play: () => ({ tokens: [72, 105], failure }) });
  const app = entropic({ model, logger: (entry) => void log.push(entry) });
  for (const path of [CHAT, COMPLETIONS]) {
    const body = { messages: MESSAGES, prompt: "Hi", stream: true };
    const response = await post(app, path, body);
    assertEquals(response.status, 200);
    const chunks = events(await response.text());
    assertEquals(chunks.at(-1), {
      error: {
        message: "Cannot go on: the worker died",
        type: "server_error",
        param: null,
        code: "backend_failed",
      },
    });
    assertEquals(log.at(-1)?.error, "Cannot go on: the worker died");
  }
  assertEquals(model.engine.live, 0);
});

Deno.test("a full queue is 503 with Retry-After, also for streams, and takes nothing", async () => {
  const model = fakeModel({ capacity: 2 });
  const app = entropic(model);
  for (const stream of [false, true]) {
    const response = await post(app, CHAT, { messages: MESSAGES, n: 3, stream });
    assertEquals(response.headers.get("retry-after"), "3");
    await expectError(app, response, { status: 503, code: "overloaded" });
    assertEquals(model.engine.live, 0);
  }
});

Deno.test("an engine that stops in the middle is told as 503", async () => {
  const model = fakeModel({ play: () => say("x") });
  const submit = model.engine.submit.bind(model.engine);
  model.engine.submit = async (request) => {
    const stream = await submit(request);
    stream.abort();
    return stream;
  };
  const response = await post(entropic(model), CHAT, { messages: MESSAGES });
  assertEquals([response.status, (await response.json()).error.code], [503, "overloaded"]);
});

const PHASES = [["prefilling", 0], ["decoding", 3], ["the last step", 12]] as const;

for (const [phase, position] of PHASES) {
  Deno.test(`a client that leaves a stream while ${phase} frees all its choices`, async () => {
    for (const how of ["signal", "cancel"]) {
      const log: AccessEntry[] = [];
      const model = fakeModel({ play: () => stuckAt(position) });
      const app = entropic({ model, logger: (entry) => void log.push(entry) });
      const client = new AbortController();
      const body = { messages: MESSAGES, stream: true, n: 3 };
      const response = await post(app, CHAT, body, { signal: client.signal });
      const reader = response.body!.getReader();
      for (let read = 0; read < 3 + 3 * position; read++) await reader.read();
      assertEquals(model.engine.live, 3);
      if (how === "signal") client.abort();
      else await reader.cancel();
      assertEquals(model.engine.live, 0, how);
      await settle();
      assertEquals([log.length, log[0]?.disconnected], [1, true]);
    }
  });

  Deno.test(`a client that leaves a whole answer while ${phase} frees all its choices`, async () => {
    const log: AccessEntry[] = [];
    const model = fakeModel({ play: () => stuckAt(position) });
    const app = entropic({ model, logger: (entry) => void log.push(entry) });
    const client = new AbortController();
    const pending = post(app, CHAT, { messages: MESSAGES, n: 3 }, { signal: client.signal });
    while (model.engine.produced < 3 * position || model.engine.live < 3) await settle();
    client.abort();
    assertEquals(model.engine.live, 0);
    assertEquals((await pending).status, 499);
    assertEquals([log.length, log[0]?.disconnected], [1, true]);
  });
}

Deno.test("a client that left before its request was queued frees it at once", async () => {
  const model = fakeModel({ play: () => stuckAt(0) });
  const client = new AbortController();
  const submit = model.engine.submit.bind(model.engine);
  model.engine.submit = (request) => {
    client.abort();
    return submit(request);
  };
  const body = { messages: MESSAGES };
  await post(entropic(model), CHAT, body, { signal: client.signal });
  assertEquals(model.engine.live, 0);
});

Deno.test("a signal that fires after success changes nothing", async () => {
  const model = fakeModel();
  const app = entropic(model);
  const client = new AbortController();
  const body = { messages: MESSAGES, stream: true };
  const response = await post(app, CHAT, body, { signal: client.signal });
  assertEquals(chatTexts(events(await response.text())), ["Hello, world"]);
  client.abort();
  assertEquals((await model.engine.stats()).finished, { stop: 1, length: 0, abort: 0, error: 0 });
  await chat(app);
});

Deno.test("a slow reader pauses its own sequence and no other", async () => {
  const model = fakeModel({ play: () => say("x".repeat(400)) });
  const app = entropic(model);
  const slow = await post(app, CHAT, { messages: MESSAGES, stream: true });
  const reader = slow.body!.getReader();
  await reader.read();
  await settle();
  const before = model.engine.produced;
  assert(before <= 2, `produced ${before} for a reader that took one event`);
  assertEquals((await chat(app)).usage.completion_tokens, 400);
  assertEquals(model.engine.produced, before + 400);
  await reader.cancel();
});

Deno.test("a prefill that takes long sends comments before its first token", async () => {
  const prefill = Promise.withResolvers<void>();
  const play = () => ({
    ...say("Hi"),
    before: (at: number) => at === 0 ? prefill.promise : undefined,
  });
  const app = entropic({ model: fakeModel({ play }), keepAliveSeconds: 0.01 });
  const response = await post(app, CHAT, { messages: MESSAGES, stream: true });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.endsWith(": keep-alive\n\n: keep-alive\n\n")) text += (await reader.read()).value;
  prefill.resolve();
  for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
  assertEquals(chatTexts(events(text)), ["Hi"]);
});

Deno.test("choices of one stream are interleaved, each in its own order", async () => {
  const app = entropic(fakeModel());
  const response = await post(app, CHAT, { messages: MESSAGES, stream: true, n: 3 });
  const chunks = events(await response.text());
  assertEquals(chatTexts(chunks), ["Hello, world", "Hello, world", "Hello, world"]);
  const indices: number[] = chunks.map(({ choices }: Json) => choices[0].index);
  assert(indices.lastIndexOf(0) > indices.indexOf(2), "choice 2 began before choice 0 ended");
});
