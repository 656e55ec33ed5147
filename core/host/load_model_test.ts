import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { openAsBlob } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../tests/support/temporary_directory.ts";
import { tinyModel } from "../../tests/support/tiny_model.ts";
import { generate } from "../generate.ts";
import { LocalEngine } from "../engine/local_engine.ts";
import { BlobSource, MemorySource } from "../model/memory_source.ts";
import type { ByteSource } from "../model/source.ts";
import { loadModel, type LoadOptions } from "./load_model.ts";

const bytes = tinyModel();

/** What a model of these bytes says, and whether its engine is in this thread. */
async function say(source: ByteSource) {
  const { engine, ...model } = await loadModel({ model: [source], worker: true });
  const tokens: number[] = [];
  for await (const { token } of generate({ engine, ...model }, "Hello", { maxTokens: 8 })) {
    tokens.push(token);
  }
  await engine.dispose();
  return { tokens, here: engine instanceof LocalEngine };
}

Deno.test("loadModel takes a blob into a Worker, where it says the same", async () => {
  const there = await say(new BlobSource("tiny.gguf", new Blob([bytes])));
  const here = await say(new MemorySource("tiny.gguf", bytes));
  assertEquals([there.here, here.here], [false, true]);
  assertEquals(there.tokens, here.tokens);
});

Deno.test("loadModel keeps a blob that cannot be cloned in this thread", async () => {
  await using folder = await temporaryDirectory();
  const path = join(folder.path, "tiny.gguf");
  await Deno.writeFile(path, bytes);
  const { here, tokens } = await say(new BlobSource("tiny.gguf", await openAsBlob(path)));
  assert(here && tokens.length > 0);
});

Deno.test("loadModel computes in the arithmetic that it is told, in a Worker too", async () => {
  const source = new BlobSource("tiny.gguf", new Blob([bytes]));
  for (const worker of [false, true]) {
    const { engine } = await loadModel({ model: [source], worker, arithmetic: "f32" });
    assertMatch(engine.info.backend.variant, /^f32 /);
    await engine.dispose();
  }
});

Deno.test("loadModel refuses options that it does not have or cannot use", async () => {
  const refused = (kind: typeof Error, message: string, options: unknown) =>
    assertRejects(() => loadModel(options as LoadOptions), kind, message);
  const model = [new MemorySource("tiny.gguf", bytes)];
  await refused(TypeError, 'option "contextLength" of loadModel', { model, contextLength: 64 });
  for (const options of [null, "smollm2"]) {
    await refused(TypeError, "options of loadModel: they are an object", options);
  }
  for (const none of [5, [], {}]) await refused(TypeError, "as model", { model: none });
  await refused(TypeError, "options of attention", { model, attention: "mass" });
  await refused(TypeError, 'option "masses" of attention', { model, attention: { masses: 1 } });
  await refused(RangeError, "Cannot use maxWaiting -1", { model, maxWaiting: -1 });
  await refused(RangeError, "Cannot use prefillChunk 0", { model, prefillChunk: 0 });
  await refused(RangeError, 'Cannot use policy "x"', { model, policy: "x" });
  await refused(RangeError, "context is x, allowed is 1 or more", { model, context: "x" });
  await refused(RangeError, 'Cannot use arithmetic "f64"', { model, arithmetic: "f64" });
});
