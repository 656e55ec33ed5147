import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertFalse,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import type { Backend } from "../core/engine/backend.ts";
import { uncertainty } from "../core/entropic/entropy.ts";
import { BackendError, ModelError } from "../core/errors.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import type { TensorType } from "../core/model/tensors.ts";
import { blocks, part, prefill, rowsOf, text } from "../tests/support/backend_steps.ts";
import { tinyModel, type TinyModelOptions } from "../tests/support/tiny_model.ts";
import { createWasmBackend, type WasmBackendOptions } from "./backend.ts";
import { supports, type Variant } from "./loader.ts";

const VARIANTS = (["simd128", "relaxed"] satisfies Variant[]).filter(supports);

async function tinyBackend(
  options: Partial<WasmBackendOptions> = {},
  model: TinyModelOptions = { type: "Q4_1" },
): Promise<Backend> {
  const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel(model))]);
  return await createWasmBackend({ files, kvBlocks: 64, topK: 8, ...options });
}

for (const variant of VARIANTS) {
  for (const kvType of ["q8", "f32"] as const) {
    Deno.test(`WasmBackend ${variant}, KV ${kvType}: chunks of a prompt never change a bit`, async () => {
      const backend = await tinyBackend({ variant, kvType });
      const prompt = text(77);
      const whole = await prefill(backend, prompt, blocks(5), 77);
      for (const chunk of [1, 2, 3, 5, 16, 31]) {
        assertEquals(await prefill(backend, prompt, blocks(5, 10), chunk), whole, `chunk ${chunk}`);
      }
      await backend.dispose();
    });

    Deno.test(`WasmBackend ${variant}, KV ${kvType}: neighbours never change a bit`, async () => {
      const backend = await tinyBackend({ variant, kvType });
      const prompts = [5, 33, 1, 48, 17, 20].map((length, i) => text(length, i + 2));
      const alone = [];
      for (const prompt of prompts) alone.push(await prefill(backend, prompt, blocks(4), 64));
      const together = await backend.forward(
        prompts.map((prompt, i) => part(prompt, 0, blocks(4, 8 + 4 * i))),
      );
      assertEquals(await rowsOf(backend, together), alone);
      await backend.dispose();
    });
  }

  Deno.test(`WasmBackend ${variant}: all rows equal the last rows of shorter prompts`, async () => {
    const backend = await tinyBackend({ variant });
    const prompt = text(20);
    const all = await rowsOf(
      backend,
      await backend.forward([part(prompt, 0, blocks(2), "all")]),
    );
    for (const length of [1, 2, 16, 17, 20]) {
      const last = await prefill(backend, prompt.slice(0, length), blocks(2, 4), 64);
      assertEquals(all[length - 1], last, `length ${length}`);
    }
    await backend.dispose();
  });

  Deno.test(`WasmBackend ${variant}: later tokens in a block leave earlier results alone`, async () => {
    const backend = await tinyBackend({ variant });
    const first = await prefill(backend, text(5), blocks(1), 5);
    // The rest of the block is now full of another sequence's keys and values.
    await prefill(backend, text(16, 9), blocks(1), 16);
    assertEquals(await prefill(backend, text(5), blocks(1), 5), first);
    await backend.dispose();
  });
}

Deno.test("WasmBackend gives the same bits with simd128 and relaxed SIMD", {
  ignore: VARIANTS.length < 2,
}, async () => {
  for (const type of ["Q4_1", "Q8_0", "Q6_K", "F16"] satisfies TensorType[]) {
    const results = [];
    for (const variant of VARIANTS) {
      const backend = await tinyBackend({ variant }, { type });
      results.push(await prefill(backend, text(40), blocks(3), 40));
      await backend.dispose();
    }
    assertEquals(results[0], results[1], type);
  }
});

Deno.test("WasmBackend reads blocks wherever the block table puts them", async () => {
  const backend = await tinyBackend();
  const expected = await prefill(backend, text(60), blocks(4), 60);
  assertEquals(await prefill(backend, text(60), [63, 0, 17, 5], 7), expected);
  await backend.dispose();
});

Deno.test("WasmBackend.copyBlocks copies in order, so that a sequence goes on in the copy", async () => {
  const backend = await tinyBackend();
  const tokens = text(40);
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  const next = part(tokens.slice(33), 33, blocks(3));
  const expected = await rowsOf(backend, await backend.forward([next]));
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  await backend.copyBlocks([[0, 10], [1, 11], [2, 12], [12, 20]]);
  await prefill(backend, text(48, 5), blocks(3), 64);
  const moved = { ...next, blockTable: [10, 11, 20] };
  assertEquals(await rowsOf(backend, await backend.forward([moved])), expected);
  await backend.dispose();
});

Deno.test("WasmBackend.writeBlocks puts back what readBlocks gave", async () => {
  const backend = await tinyBackend();
  const tokens = text(40);
  const next = part(tokens.slice(33), 33, blocks(3));
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  const content = await backend.readBlocks([2, 0, 1]);
  const expected = await rowsOf(backend, await backend.forward([next]));
  await prefill(backend, text(48, 5), blocks(3), 64);
  await backend.writeBlocks([42, 40, 41], content);
  const moved = { ...next, blockTable: [40, 41, 42] };
  assertEquals(await rowsOf(backend, await backend.forward([moved])), expected);
  await assertRejects(
    () => backend.writeBlocks([1, 2], content),
    RangeError,
    `content has ${content.length} bytes, expected are ${content.length / 3 * 2}`,
  );
  await backend.dispose();
});

Deno.test("WasmBackend counts what dense attention reads", async () => {
  const backend = await tinyBackend();
  const { attention } = await backend.forward([
    part(text(20), 0, blocks(2), "none"),
    part(text(1), 0, blocks(1, 2), "last"),
  ]);
  // 16 tokens read one block and 4 read two; the tiny model has 2 layers and 2 KV heads, and its
  // last layer attends for output rows only.
  assertEquals(attention.map(({ blocksRead }) => blocksRead), [2 * 24, 2 * 2]);
  const bytes = backend.describe().kvBytes / backend.limits.kvBlocks / 4;
  assertEquals(attention.map(({ bytesRead }) => bytesRead), [48 * bytes, 4 * bytes]);
  await backend.dispose();
});

Deno.test("WasmBackend refuses what does not fit, and computes on", async () => {
  const backend = await tinyBackend({ contextLength: 64, maxBatchTokens: 32, maxOutputRows: 4 });
  const { vocabularySize } = backend.config;
  const good = part(text(3), 0, blocks(1));
  const bad = {
    "no new tokens": part([], 0, blocks(1)),
    "36 new tokens": part(text(33), 0, blocks(3)),
    "6 output rows": part(text(5), 0, blocks(1), "all"),
    "positions 62 to 65": part(text(3), 62, blocks(5)),
    "positions -1 to 2": part(text(3), -1, blocks(1)),
    "positions 0.5 to 3.5": part(text(3), 0.5, blocks(1)),
    "block table has 1 of 2": part(text(17), 0, blocks(1)),
    "KV block is 64": part(text(3), 0, [64]),
    "KV block is -1": part(text(3), 0, [-1]),
    [`token id is ${vocabularySize}`]: part([1, vocabularySize], 0, blocks(1)),
    "token id is 1.5": part([1.5], 0, blocks(1)),
    "attention plan is mass": {
      ...good,
      attention: { kind: "mass", mass: 0.9, minBlocks: 1 } as const,
    },
  };
  const before = await rowsOf(backend, await backend.forward([good]));
  for (const [message, sequence] of Object.entries(bad)) {
    const error = await assertRejects(() => backend.forward([good, sequence]), RangeError);
    assertStringIncludes(error.message, message);
  }
  await assertRejects(() => backend.logits(1), RangeError, "row is 1, the latest step has 1");
  await assertRejects(() => backend.copyBlocks([[0, 64]]), RangeError, "KV block is 64");
  await assertRejects(() => backend.readBlocks([64]), RangeError, "KV block is 64");
  assertEquals(await rowsOf(backend, await backend.forward([good])), before);
  assertEquals(await backend.forward([]), { rows: [], attention: [] });
  await backend.dispose();
});

Deno.test("WasmBackend tells a row's uncertainty at any temperature", async () => {
  const backend = await tinyBackend();
  const { rows: [stats] } = await backend.forward([part(text(9), 0, blocks(1))]);
  const { entropy, varentropy } = await backend.tempered(0, 1);
  assertEquals([entropy, varentropy], [stats!.entropy, stats!.varentropy]);
  const logits = Float64Array.from(await backend.logits(0));
  for (const temperature of [0.01, 0.3, 2, 50]) {
    const exact = uncertainty(logits.map((logit) => logit / temperature));
    const found = await backend.tempered(0, temperature);
    assertAlmostEquals(found.entropy, exact.entropy, 1e-5, `H at ${temperature}`);
    assertAlmostEquals(found.varentropy, exact.varentropy, 1e-4, `V at ${temperature}`);
  }
  await assertRejects(() => backend.tempered(0, 0), RangeError, "temperature is 0");
  await assertRejects(() => backend.tempered(1, 1), RangeError, "row is 1");
  await backend.dispose();
});

Deno.test("WasmBackend draws from a row with overrides, and leaves the row as it is", async () => {
  const backend = await tinyBackend();
  await backend.forward([part(text(9), 0, blocks(1))]);
  const logits = await backend.logits(0);
  assertEquals(await backend.logitsOf(0, [5, 2]), Float32Array.of(logits[5]!, logits[2]!));
  const ids = Uint32Array.of(7, 3), raised = Float32Array.of(98, 99);
  const greedy = { topK: 0, topP: 1, minP: 0, temperature: 0, u: 0 };
  assertEquals(await backend.draw(0, { ...greedy, overrides: { ids, logits: raised } }), 3);
  const all = Uint32Array.from(logits.keys());
  const none = { ids: all, logits: new Float32Array(all.length).fill(-Infinity) };
  assertEquals(await backend.draw(0, { ...greedy, overrides: none }), undefined);
  assertEquals(await backend.logits(0), logits);
  const outside = { ids: Uint32Array.of(1e6), logits: Float32Array.of(0) };
  const draw = { ...greedy, overrides: outside };
  await assertRejects(() => backend.draw(0, draw), RangeError, "token id is 1000000");
  await assertRejects(() => backend.logitsOf(0, [-1]), RangeError, "token id is -1");
  await assertRejects(() => backend.draw(1, { ...draw }), RangeError, "row is 1");
  await backend.dispose();
});

Deno.test("createWasmBackend refuses options that are out of range", async () => {
  for (const options of [{ kvBlocks: 0 }, { contextLength: 1.5 }, { threads: -1 }]) {
    const [name, value] = Object.entries(options)[0]!;
    await assertRejects(() => tinyBackend(options), RangeError, `${name} is ${value}`);
  }
  await assertRejects(() => tinyBackend({}, { headSize: 8 }), RangeError, "head size is 8");
});

Deno.test("createWasmBackend rejects more KV blocks than the memory holds", async () => {
  const error = await assertRejects(() => tinyBackend({ kvBlocks: 2 ** 28 }), BackendError);
  assertStringIncludes(error.message, "Cannot reserve 268435456 KV blocks");
});

Deno.test("WasmBackend computes nothing once its signal has fired", async () => {
  const backend = await tinyBackend();
  const controller = new AbortController();
  controller.abort(new Error("gone"));
  await assertRejects(
    () => backend.forward([part(text(3), 0, blocks(1))], controller.signal),
    Error,
    "gone",
  );
  await backend.dispose();
});

Deno.test("WasmBackend rejects after dispose, and a second dispose does nothing", async () => {
  const backend = await tinyBackend();
  await backend.dispose();
  await backend.dispose();
  const error = await assertRejects(
    () => backend.forward([part(text(3), 0, blocks(1))]),
    BackendError,
    "disposed",
  );
  assert(error.fatal);
});

Deno.test("WasmBackend is of no use after a trap, and says so", async () => {
  const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel())]);
  // Rust trusts the configuration: an end token outside the vocabulary is out of bounds.
  const config = { ...files.config, endTokens: [1e6] };
  const backend = await createWasmBackend({ files: { ...files, config }, kvBlocks: 4 });
  for (let call = 0; call < 2; call++) {
    const error = await assertRejects(
      () => backend.forward([part(text(3), 0, blocks(1))]),
      BackendError,
      "the WASM core failed",
    );
    assert(error.fatal);
  }
});

Deno.test("WasmBackend gives no finite log Z where the weights hold a NaN", async () => {
  const model = tinyModel({ type: "Q8_0" });
  const { files } = await openModel([new MemorySource("tiny.gguf", model)]);
  const norm = files.tensors.get("blk.1.ffn_norm.weight")!;
  new DataView(model.buffer).setFloat32(norm.offset + 4 * 11, NaN, true);
  const backend = await createWasmBackend({ files, kvBlocks: 64 });
  const { rows: [row] } = await backend.forward([part(text(3), 0, blocks(1))]);
  assertFalse(Number.isFinite(row!.logZ));
  await backend.dispose();
});

Deno.test("createWasmBackend refuses weights whose scales it cannot keep", async () => {
  for (const type of ["Q4_1", "Q8_0", "Q5_0", "Q6_K"] as const) {
    const hiddenSize = type === "Q6_K" ? 256 : 64;
    const model = tinyModel({ type, hiddenSize, feedForwardSize: 256 });
    const { files } = await openModel([new MemorySource("tiny.gguf", model)]);
    const up = files.tensors.get("blk.1.ffn_up.weight")!;
    const scale = up.offset + (type === "Q6_K" ? 208 : 0);
    new DataView(model.buffer).setUint16(scale, 0x7c00, true);
    await assertRejects(
      () => createWasmBackend({ files, kvBlocks: 4 }),
      ModelError,
      "Cannot load blk.1.ffn_up.weight: a scale in it is not finite, or too large",
    );
  }
});

Deno.test("WasmBackend reports progress up to the bytes of all tensors", async () => {
  const seen: [number, number][] = [];
  const backend = await tinyBackend({ onProgress: (...progress) => seen.push(progress) });
  const [loaded, total] = seen.at(-1)!;
  assertEquals(loaded, total);
  assert(seen.every(([bytes], i) => i === 0 || bytes > seen[i - 1]![0]));
  await backend.dispose();
});
