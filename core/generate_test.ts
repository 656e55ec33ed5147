import { assertEquals, assertRejects } from "@std/assert";
import { fakeModel } from "../tests/support/fake_engine.ts";
import { RequestError } from "./errors.ts";
import type { LanguageModel } from "./language_model.ts";
import { generate, type GenerateOptions } from "./generate.ts";

async function read(model: LanguageModel, options: GenerateOptions) {
  let text = "";
  for await (const token of generate(model, "Say hello", options)) text += token.text;
  return text;
}

Deno.test("generate gives the text of each token, up to a stop string", async () => {
  const model = fakeModel();
  assertEquals(await read(model, {}), "Hello, world");
  assertEquals(await read(model, { stop: [", w"] }), "Hello");
});

Deno.test("generate stops when it is told to, while the engine takes the request and after", async () => {
  const model = fakeModel();
  for (const tokens of [0, 3]) {
    const stop = new AbortController();
    const reading = (async () => {
      let count = 0;
      for await (const _ of generate(model, "Say hello", { signal: stop.signal })) {
        if (++count === tokens) stop.abort();
      }
    })();
    if (tokens === 0) stop.abort();
    await assertRejects(() => reading, DOMException, "abort");
    assertEquals([model.engine.produced, model.engine.live], [tokens, 0]);
  }
});

Deno.test("generate refuses what it cannot use before the engine hears of it", async () => {
  const model = fakeModel();
  const refused = async (
    kind: Parameters<typeof assertRejects>[1],
    message: string,
    prompt: unknown,
    options?: unknown,
  ) => {
    const reading = generate(model, prompt as string, options as GenerateOptions).next();
    await assertRejects(() => reading, kind, message);
  };
  for (const prompt of [undefined, null, 5, { prompt: "Say hello" }]) {
    await refused(TypeError, "as a prompt: it is a text or chat messages", prompt);
  }
  await refused(RequestError, "there are none", []);
  const good = { role: "user", content: "Say hello" };
  for (
    const bad of [5, null, "hello", { role: "user" }, { ...good, content: [] }, { content: "" }]
  ) {
    await refused(TypeError, "message 1: role and content are texts", [good, bad]);
  }
  await refused(TypeError, 'option "max_tokens" of generate', "Say hello", { max_tokens: 1 });
  await refused(TypeError, "options of generate: they are an object", "Say hello", null);
  for (const stop of ["END", [5]]) {
    await refused(TypeError, "as stop: it is an array of texts", "Say hello", { stop });
  }
  await refused(RangeError, "stop string: current value is empty", "Say hello", { stop: [""] });
  for (const seed of [1.5, -1, NaN, "7"]) {
    await refused(RequestError, `seed: current value is ${seed}`, "Say hello", { seed });
  }
  assertEquals(model.engine.requests, []);
});

Deno.test("generate takes a seed as a number or a bigint", async () => {
  const model = fakeModel();
  for (const seed of [7, 7n, undefined]) await read(model, { ...seed !== undefined && { seed } });
  assertEquals(model.engine.requests.map(({ sampling }) => sampling.seed), [7n, 7n, 0n]);
});
