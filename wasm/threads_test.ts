import { assert, assertEquals, assertRejects } from "@std/assert";
import { ARITHMETICS } from "../core/engine/arithmetic.ts";
import { type Backend, DENSE } from "../core/engine/backend.ts";
import { BackendError } from "../core/errors.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import type { ModelFiles } from "../core/model/tensors.ts";
import { tinyModel, type TinyModelOptions } from "../tests/support/tiny_model.ts";
import { createWasmBackend } from "./backend.ts";
import { supports } from "./loader.ts";

const ignore = !supports("threads");

async function tinyFiles(options: TinyModelOptions = {}): Promise<ModelFiles> {
  const bytes = tinyModel({ type: "Q4_1", contextLength: 256, ...options });
  return (await openModel([new MemorySource("tiny.gguf", bytes)])).files;
}

/** Sequences of different lengths, with an output row for every token. */
const BATCH = [30, 1, 17].map((length, sequence) => ({
  tokens: Array.from({ length }, (_, i) => (i * i * 13 + sequence) % 200),
  position: 0,
  blockTable: [2 * sequence, 2 * sequence + 1],
  attention: DENSE,
  output: "all" as const,
}));

for (const arithmetic of ARITHMETICS) {
  Deno.test(`WasmBackend in ${arithmetic} gives the same bits with any number of threads`, {
    ignore,
  }, async () => {
    const options = { files: await tinyFiles(), kvBlocks: 8, arithmetic };
    const single = await createWasmBackend({ ...options, variant: "relaxed" });
    const expected = await single.forward(BATCH);
    for (const threads of [1, 2, 3]) {
      const backend = await createWasmBackend({ ...options, variant: "threads", threads });
      assertEquals(backend.describe().threads, threads);
      for (let repeat = 0; repeat < 20; repeat++) {
        assertEquals(await backend.forward(BATCH), expected, `${threads} threads`);
      }
      assertEquals(await backend.logits(40), await single.logits(40));
      await backend.dispose();
    }
    await single.dispose();
  });
}

Deno.test("WasmBackend writes the same KV with any number of threads", { ignore }, async () => {
  const files = await tinyFiles();
  const tokens = Array.from({ length: 150 }, (_, i) => (i * i * 31 + 7 * i) % 200);
  const blockTable = Array.from({ length: 10 }, (_, i) => i);
  const single = await createWasmBackend({ files, kvBlocks: 16, variant: "relaxed" });
  const shared = await createWasmBackend({ files, kvBlocks: 16, variant: "threads", threads: 3 });
  /** Reads the prompt in steps of `chunk`. */
  const fill = async (backend: Backend, chunk: number) => {
    for (let position = 0; position < tokens.length; position += chunk) {
      const part = tokens.slice(position, position + chunk);
      const input = { tokens: part, position, blockTable, attention: DENSE } as const;
      await backend.forward([{ ...input, output: "none" }]);
    }
    return await backend.readBlocks(blockTable);
  };
  const expected = await fill(single, 150);
  // Neighbours in a block are written by different threads, at the same time but rarely.
  for (let repeat = 0; repeat < 300; repeat++) {
    const chunk = [64, 17, 33, 150][repeat % 4] as number;
    const found = await fill(shared, chunk);
    assert(found.every((byte, i) => byte === expected[i]), `repeat ${repeat}, chunk ${chunk}`);
  }
  await Promise.all([single.dispose(), shared.dispose()]);
});

Deno.test("WasmBackend attends to long contexts alike with any number of threads", {
  ignore,
}, async () => {
  const decoded = async (files: ModelFiles, threads: number) => {
    const variant = threads > 1 ? "threads" : "relaxed";
    const backend = await createWasmBackend({ files, kvBlocks: 256, variant, threads });
    const blockTable = Array.from({ length: 256 }, (_, i) => i);
    const run = (tokens: number[], position: number) =>
      backend.forward([{ tokens, position, blockTable, attention: DENSE, output: "last" }]);
    const steps = [];
    for (let at = 0; at < 3000; at += 250) {
      const prompt = Array.from({ length: 250 }, (_, i) => ((at + i) ** 2 * 13) % 200);
      await run(prompt, at);
      // Few units, each of one to three parts, that several threads share.
      for (let i = 0; i < 2; i++) steps.push(await run([i], at + 250 + i));
    }
    await backend.dispose();
    return steps;
  };
  // Two query heads a KV head, and six, which are more than are computed together.
  for (const shape of [{}, { heads: 12, hiddenSize: 192 }]) {
    const files = await tinyFiles({ contextLength: 4096, ...shape });
    const expected = await decoded(files, 1);
    for (const threads of [2, 3]) {
      assertEquals(await decoded(files, threads), expected, `${threads} threads`);
    }
  }
});

Deno.test("createWasmBackend takes the threads that it is allowed", { ignore }, async () => {
  const files = await tinyFiles();
  for (const [threads, variant] of [[1, "relaxed"], [2, "threads"]] as const) {
    const backend = await createWasmBackend({ files, kvBlocks: 8, threads });
    assertEquals(backend.describe().variant, `int8 ${variant}`);
    assertEquals(backend.describe().threads, threads);
    await backend.dispose();
  }
});

Deno.test("WasmBackend fails, and does not freeze, when a thread traps", { ignore }, async () => {
  const files = await tinyFiles();
  // Rust trusts the configuration: an end token outside the vocabulary is out of bounds, in
  // whichever thread computes the statistics of a row.
  const config = { ...files.config, endTokens: [1e6] };
  const backend = await createWasmBackend({
    files: { ...files, config },
    kvBlocks: 8,
    variant: "threads",
    threads: 3,
  });
  for (let call = 0; call < 2; call++) {
    const error = await assertRejects(() => backend.forward(BATCH), BackendError);
    assert(error.fatal);
  }
  await backend.dispose();
});

Deno.test("createWasmBackend runs threads from within a Worker", { ignore }, async () => {
  const source = `
    import { createWasmBackend } from ${JSON.stringify(import.meta.resolve("./backend.ts"))};
    import { openModel } from ${
    JSON.stringify(import.meta.resolve("../core/model/gguf/open_model.ts"))
  };
    import { MemorySource } from ${
    JSON.stringify(import.meta.resolve("../core/model/memory_source.ts"))
  };
    onmessage = async ({ data: { bytes, batch } }) => {
      const { files } = await openModel([new MemorySource("tiny.gguf", bytes)]);
      const backend = await createWasmBackend({ files, kvBlocks: 8, threads: 2 });
      const { rows } = await backend.forward(batch);
      await backend.dispose();
      postMessage(rows.length);
    };`;
  const worker = new Worker(`data:text/javascript,${encodeURIComponent(source)}`, {
    type: "module",
  });
  const rows = await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ bytes: tinyModel({ type: "Q4_1" }), batch: BATCH });
  });
  assertEquals(rows, 48);
  worker.terminate();
});
