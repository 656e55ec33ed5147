import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertFalse,
  assertLess,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import type { Backend } from "../core/engine/backend.ts";
import { BackendError, ModelError } from "../core/errors.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import type { TensorType } from "../core/model/tensors.ts";
import { blocks, part, prefill, rowsOf, text } from "../tests/support/backend_steps.ts";
import { capturedGpu } from "../tests/support/captured_gpu.ts";
import { ADAPTER, LIMITS } from "../tests/support/gpu.ts";
import { tinyModel, type TinyModelOptions } from "../tests/support/tiny_model.ts";
import { createWasmBackend } from "../wasm/backend.ts";
import { createWebGpuBackend, type WebGpuBackendOptions } from "./backend.ts";
import { type Arithmetic, ARITHMETICS } from "./kernels/matmul_parameters.ts";

const ignore = ADAPTER === undefined;

async function filesOf(model: TinyModelOptions) {
  return (await openModel([new MemorySource("tiny.gguf", tinyModel(model))])).files;
}

async function tinyBackend(
  options: Partial<WebGpuBackendOptions> = {},
  model: TinyModelOptions = { type: "Q4_1" },
): Promise<Backend> {
  const sizes = {
    kvBlocks: 64,
    topK: 8,
    maxBatchTokens: 128,
    limits: "default",
    warmUp: false,
  } as const;
  return await createWebGpuBackend({ files: await filesOf(model), ...sizes, ...options });
}

/** One for all tests that need no more: compiling its kernels is what takes time. */
let shared: Promise<Backend> | undefined;
const sharedBackend = () => shared ??= tinyBackend();

const largest = (a: Float32Array, b: Float32Array) =>
  a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

for (const limits of LIMITS) {
  Deno.test(
    { name: `WebGpuBackend at ${limits} limits computes what WASM does`, ignore },
    async () => {
      // WASM rounds activations to 8 bits before quantised products, but not before those in F16;
      // in int8 both do.
      const models: readonly (readonly [TinyModelOptions, number, Arithmetic?])[] = [
        [{ type: "F16" }, 2e-3],
        [{ type: "Q8_0", untied: true, heads: 4, kvHeads: 1 }, 0.2],
        [{ type: "Q8_0", untied: true, heads: 4, kvHeads: 1 }, 0.05, "int8"],
        [{ type: "F16", ropeFactors: [1, 1.5, 2, 2.5, 3, 3.5, 4, 8], layers: 1 }, 2e-3],
      ];
      // Limits decide nothing but sizes, so one model is enough to see the larger ones taken.
      for (
        const [model, bound, arithmetic = "f32"] of limits === "default"
          ? models
          : models.slice(0, 1)
      ) {
        const files = await filesOf(model);
        const sizes = { files, kvBlocks: 16, topK: 8, maxOutputRows: 80, kvType: "f32" } as const;
        const gpu = await createWebGpuBackend({ ...sizes, limits, arithmetic, warmUp: false });
        const wasm = await createWasmBackend(sizes);
        const step = [
          part(text(70), 0, blocks(5), "all"),
          part(text(9, 4), 0, blocks(1, 9), "last"),
        ];
        const found = await gpu.forward(step.slice(0, 1)),
          expected = await wasm.forward(step.slice(0, 1));
        let difference = 0;
        for (const row of [0, 1, 31, 69]) {
          difference = Math.max(difference, largest(await gpu.logits(row), await wasm.logits(row)));
        }
        const name = `${model.type} in ${arithmetic}`;
        console.log(`${name}, largest difference of logits to WASM: ${difference}`);
        assertLess(difference, bound, JSON.stringify(model));
        for (const [row, stats] of found.rows.entries()) {
          assertAlmostEquals(stats.entropy, expected.rows[row]!.entropy, bound);
          assertAlmostEquals(stats.endProbability, expected.rows[row]!.endProbability, bound);
        }
        assertEquals((await gpu.forward(step)).attention, (await wasm.forward(step)).attention);
        await gpu.dispose();
        await wasm.dispose();
      }
    },
  );
}

/** What WebGPU in each arithmetic may differ from WASM by, which rounds activations to 8 bits. */
const TO_WASM = { f32: 0.4, int8: 0.05 } as const;

for (const arithmetic of ARITHMETICS) {
  Deno.test({ name: `WebGpuBackend in ${arithmetic} runs every tensor type`, ignore }, async () => {
    const types: TensorType[] = [
      ...["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"] as const,
      ...arithmetic === "f32" ? ["BF16", "F32"] as const : [],
    ];
    const differences: string[] = [];
    for (const type of types) {
      const files = await filesOf({ type, layers: 1 });
      const sizes = { files, kvBlocks: 16, topK: 8, kvType: "f32" } as const;
      const gpu = await createWebGpuBackend({ ...sizes, arithmetic, warmUp: false });
      const wasm = await createWasmBackend(sizes);
      const step = [part(text(1), 0, blocks(1), "last")];
      const [[found], [expected]] = [
        (await gpu.forward(step)).rows,
        (await wasm.forward(step)).rows,
      ];
      assertAlmostEquals(found!.entropy, expected!.entropy, 0.1, type);
      const difference = largest(await gpu.logits(0), await wasm.logits(0));
      differences.push(`${type} ${difference.toExponential(1)}`);
      assertLess(difference, TO_WASM[arithmetic], type);
      await gpu.dispose();
      await wasm.dispose();
    }
    console.log(
      `in ${arithmetic}, largest difference of logits to WASM: ${differences.join(", ")}`,
    );
  });
}

const FORMS = [
  { kvType: "f16", arithmetic: "f32" },
  { kvType: "f32", arithmetic: "f32", staging: true },
  { kvType: "f16", arithmetic: "int8" },
] as const;

for (const form of FORMS) {
  const { kvType, arithmetic } = form, usual = form === FORMS[0];
  Deno.test({
    name: `WebGpuBackend in ${arithmetic}, KV ${kvType}: chunks and neighbours never change a bit`,
    ignore,
  }, async () => {
    const backend = usual ? await sharedBackend() : await tinyBackend(form);
    assertStringIncludes(backend.describe().variant, `${arithmetic} on `);
    const prompt = text(77);
    const whole = await prefill(backend, prompt, blocks(5), 77);
    for (const chunk of kvType === "f16" ? [1, 2, 5, 16, 31] : [16, 40]) {
      assertEquals(await prefill(backend, prompt, blocks(5, 10), chunk), whole, `chunk ${chunk}`);
    }
    const prompts = [5, 33, 1, 48, 17, 20].map((length, i) => text(length, i + 2));
    const alone = [];
    for (const prompt of prompts) alone.push(await prefill(backend, prompt, blocks(4), 64));
    const together = await backend.forward(
      prompts.map((prompt, i) => part(prompt, 0, blocks(4, 8 + 4 * i))),
    );
    assertEquals(await rowsOf(backend, together), alone);
    if (!usual) await backend.dispose();
  });
}

Deno.test(
  { name: "WebGpuBackend: all rows equal the last rows of shorter prompts", ignore },
  async () => {
    const backend = await sharedBackend();
    const prompt = text(20);
    const result = await backend.forward([part(prompt, 0, blocks(2), "all")]);
    const all = await rowsOf(backend, result);
    for (const length of [1, 2, 16, 17, 20]) {
      const last = await prefill(backend, prompt.slice(0, length), blocks(2, 4), 64);
      assertEquals(all[length - 1], last, `length ${length}`);
    }
  },
);

Deno.test({ name: "WebGpuBackend cuts what is larger than a binding", ignore }, async () => {
  const whole = await sharedBackend();
  // Two rows of the down projection, 128 columns in 4 bits, have 128 bytes.
  const cut = await tinyBackend({ bindingBytes: 4096 });
  const expected = await prefill(whole, text(40), blocks(3), 64);
  assertEquals(await prefill(cut, text(40), blocks(3), 64), expected);
  const error = await assertRejects(() => tinyBackend({ bindingBytes: 64 }), ModelError);
  assertStringIncludes(error.message, "two of its rows have 128 bytes");
  await cut.dispose();
});

Deno.test({ name: "WebGpuBackend refuses by name what no binding holds", ignore }, async () => {
  await assertRejects(
    () => tinyBackend({ kvBlocks: 2 ** 20 }),
    RangeError,
    "kvBlocks is 1048576, allowed is at most",
  );
  await assertRejects(
    () => tinyBackend({ maxOutputRows: 2 ** 18 }),
    RangeError,
    "allowed are 134217728, this device's largest binding",
  );
});

Deno.test({ name: "WebGpuBackend copies, reads and writes blocks", ignore }, async () => {
  const backend = await sharedBackend();
  const tokens = text(40);
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  const content = await backend.readBlocks([2, 0, 1]);
  const next = part(tokens.slice(33), 33, blocks(3));
  const expected = await rowsOf(backend, await backend.forward([next]));
  await prefill(backend, tokens.slice(0, 33), blocks(3), 64);
  await backend.copyBlocks([[0, 10], [1, 11], [2, 12], [12, 20]]);
  await prefill(backend, text(48, 5), blocks(3), 64);
  const moved = { ...next, blockTable: [10, 11, 20] };
  assertEquals(await rowsOf(backend, await backend.forward([moved])), expected);
  await backend.writeBlocks([42, 40, 41], content);
  const written = { ...next, blockTable: [40, 41, 42] };
  assertEquals(await rowsOf(backend, await backend.forward([written])), expected);
  await assertRejects(
    () => backend.writeBlocks([1, 2], content),
    RangeError,
    `content has ${content.length} bytes, expected are ${content.length / 3 * 2}`,
  );
});

Deno.test(
  { name: "WebGpuBackend refuses what does not fit, and computes on", ignore },
  async () => {
    const backend = await tinyBackend({ contextLength: 64, maxBatchTokens: 32, maxOutputRows: 4 });
    const { vocabularySize } = backend.config;
    const good = part(text(3), 0, blocks(1));
    const before = await rowsOf(backend, await backend.forward([good]));
    const bad = {
      "36 new tokens": part(text(33), 0, blocks(3)),
      "6 output rows": part(text(5), 0, blocks(1), "all"),
      "positions 62 to 65": part(text(3), 62, blocks(5)),
      "KV block is 64": part(text(3), 0, [64]),
      [`token id is ${vocabularySize}`]: part([1, vocabularySize], 0, blocks(1)),
    };
    for (const [message, sequence] of Object.entries(bad)) {
      const error = await assertRejects(() => backend.forward([good, sequence]), RangeError);
      assertStringIncludes(error.message, message);
    }
    await assertRejects(() => backend.logits(1), RangeError, "row is 1, the latest step has 1");
    await assertRejects(() => backend.copyBlocks([[0, 64]]), RangeError, "KV block is 64");
    assertEquals(await rowsOf(backend, await backend.forward([good])), before);
    assertEquals(await backend.forward([]), { rows: [], attention: [] });
    const controller = new AbortController();
    controller.abort(new Error("gone"));
    await assertRejects(() => backend.forward([good], controller.signal), Error, "gone");
    await backend.dispose();
  },
);

Deno.test({
  name: "WebGpuBackend tells single logits and a row's uncertainty, and draws from it",
  ignore,
}, async () => {
  const backend = await sharedBackend();
  const { rows: [stats] } = await backend.forward([part(text(9), 0, blocks(1))]);
  const logits = await backend.logits(0);
  const ids = Uint32Array.of(7, 0, 199);
  assertEquals(await backend.logitsOf(0, ids), Float32Array.from(ids, (id) => logits[id]!));
  const many = Uint32Array.from({ length: 100 }, (_, i) => i);
  assertEquals(await backend.logitsOf(0, many), logits.slice(0, 100));
  const { entropy, varentropy } = await backend.tempered(0, 1);
  assertAlmostEquals(entropy, stats!.entropy, 1e-6);
  assertAlmostEquals(varentropy, stats!.varentropy, 1e-5);
  assertLess((await backend.tempered(0, 0.5)).entropy, entropy);
  const plain = { topK: 0, topP: 1, minP: 0, u: 0.5 };
  const none = { ids: new Uint32Array(), logits: new Float32Array() };
  const [best, second] = stats!.topIds;
  const greedy = { ...plain, overrides: none, temperature: 0 };
  assertEquals(await backend.draw(0, greedy), best);
  const overrides = { ids: Uint32Array.of(best!), logits: Float32Array.of(-Infinity) };
  assertEquals(await backend.draw(0, { ...greedy, overrides }), second);
  assertEquals(await backend.draw(0, { ...plain, overrides, topK: 1, temperature: 1 }), second);
  assertEquals(await backend.logits(0), logits, "drawing leaves the row alone");
  await assertRejects(() => backend.tempered(0, 0), RangeError, "temperature is 0");
});

Deno.test(
  { name: "createWebGpuBackend refuses options that are out of range", ignore },
  async () => {
    for (const options of [{ kvBlocks: 0 }, { contextLength: 1.5 }]) {
      const [name, value] = Object.entries(options)[0]!;
      await assertRejects(() => tinyBackend(options), RangeError, `${name} is ${value}`);
    }
    await assertRejects(
      () => tinyBackend({}, { headSize: 12, hiddenSize: 64 }),
      RangeError,
      "head size is 12",
    );
  },
);

Deno.test("createWebGpuBackend says where there is no WebGPU, and that it is not fatal", async () => {
  const none = { requestAdapter: () => Promise.resolve(null) } as unknown as GPU;
  const error = await assertRejects(() => tinyBackend({ gpu: none }), BackendError, "no adapter");
  assertFalse(error.fatal);
});

Deno.test({
  name: "createWebGpuBackend names the arithmetic that a device lacks, or that there is none of",
  ignore,
}, async () => {
  // It tells nothing of the language that its compiler takes.
  const { gpu } = capturedGpu();
  const error = await assertRejects(() => tinyBackend({ gpu, arithmetic: "int8" }), BackendError);
  assertStringIncludes(error.message, "arithmetic int8");
  assertStringIncludes(error.message, "lacks packed_4x8_integer_dot_product");
  assertFalse(error.fatal);
  const unknown = { arithmetic: "f64" } as unknown as Partial<WebGpuBackendOptions>;
  await assertRejects(() => tinyBackend(unknown), RangeError, "allowed are f32, int8");
});

Deno.test(
  { name: "WebGpuBackend rejects what is in flight when its device goes", ignore },
  async () => {
    const captured = capturedGpu();
    const backend = await tinyBackend({ gpu: captured.gpu });
    const going = backend.forward([part(text(60), 0, blocks(4))]);
    captured.devices[0]!.destroy();
    for (const call of [going, backend.forward([part(text(3), 0, blocks(1))])]) {
      const error = await assertRejects(
        () => call,
        BackendError,
        "Cannot compute: the WebGPU device ",
      );
      assert(error.fatal);
    }
  },
);

Deno.test({
  name: "WebGpuBackend rejects after dispose, and a second dispose does nothing",
  ignore,
}, async () => {
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

Deno.test(
  { name: "WebGpuBackend gives no finite log Z where the weights hold a NaN", ignore },
  async () => {
    const model = tinyModel({ type: "Q8_0" });
    const { files } = await openModel([new MemorySource("tiny.gguf", model)]);
    const norm = files.tensors.get("blk.1.ffn_norm.weight")!;
    new DataView(model.buffer).setFloat32(norm.offset + 4 * 11, NaN, true);
    const backend = await createWebGpuBackend({ files, kvBlocks: 64 });
    const { rows: [row] } = await backend.forward([part(text(1), 0, blocks(1))]);
    assertFalse(Number.isFinite(row!.logZ));
    await backend.dispose();
  },
);

Deno.test(
  { name: "createWebGpuBackend reports progress up to the bytes of all tensors", ignore },
  async () => {
    const seen: [number, number][] = [];
    const backend = await tinyBackend({ onProgress: (...progress) => seen.push(progress) });
    const [loaded, total] = seen.at(-1)!;
    assertEquals(loaded, total);
    assert(seen.every(([bytes], i) => i === 0 || bytes > seen[i - 1]![0]));
    await backend.dispose();
  },
);

Deno.test({
  name: "WebGpuBackend takes at most 8 dispatches a layer and 8 more, and reads back little",
  ignore,
}, async () => {
  const captured = capturedGpu();
  const backend = await createWebGpuBackend({
    ...{ files: await filesOf({ type: "F16" }), gpu: captured.gpu, kvBlocks: 64, warmUp: false },
  });
  const { layers, kvHeads, headSize } = backend.config;
  const map = new Float32Array(layers * kvHeads * 8 * headSize).fill(0.1);
  const sketch = { dimensions: 8, keyMap: map, queryMap: map };
  await backend.pruning.useSketch({ ...sketch, keyOffset: new Float32Array(layers * kvHeads * 8) });
  await backend.forward([part(text(100), 0, blocks(7), "none")]);
  const device = captured.devices[0]!;
  const create = device.createBuffer.bind(device);
  let bytes = 0;
  device.createBuffer = (descriptor) => {
    if (descriptor.usage & GPUBufferUsage.MAP_READ) bytes += descriptor.size;
    return create(descriptor);
  };
  const attention = { kind: "mass", mass: 0.5, minBlocks: 0 } as const;
  const step = { ...part(text(1), 100, blocks(7)), attention };
  await backend.forward([step]);
  assert(bytes > 0 && bytes <= 4096, `it read ${bytes} bytes`);
  if (device.features.has("timestamp-query")) {
    const kernels = await backend.profile([step]);
    assertEquals(kernels.length, 8 * layers + 4);
    assert(kernels.every(({ seconds }) => seconds >= 0));
  }
  await backend.dispose();
});
