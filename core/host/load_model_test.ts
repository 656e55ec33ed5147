import { assert, assertEquals } from "@std/assert";
import { openAsBlob } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../tests/support/temporary_directory.ts";
import { tinyModel } from "../../tests/support/tiny_model.ts";
import { generate } from "../generate.ts";
import { LocalEngine } from "../engine/local_engine.ts";
import { BlobSource, MemorySource } from "../model/memory_source.ts";
import type { ByteSource } from "../model/source.ts";
import { loadModel } from "./load_model.ts";

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
