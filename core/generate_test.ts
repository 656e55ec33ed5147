import { assertEquals, assertRejects } from "@std/assert";
import { fakeModel } from "../tests/support/fake_engine.ts";
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
