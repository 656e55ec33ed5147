import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { ARITHMETICS } from "../core/engine/arithmetic.ts";
import type { Backend } from "../core/engine/backend.ts";
import { BackendError, ModelError } from "../core/errors.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import type { TensorType } from "../core/model/tensors.ts";
import { BACKEND_CHECKS } from "../tests/support/backend_contract.ts";
import {
  assertGoneAfterDispose,
  assertRefusesAndComputesOn,
  assertReportsProgress,
  assertShowsNaN,
  NARROW,
  tinyFiles,
} from "../tests/support/backend_lifecycle.ts";
import { blocks, part, prefill, text } from "../tests/support/backend_steps.ts";
import { tinyModel, type TinyModelOptions } from "../tests/support/tiny_model.ts";
import { createWasmBackend, type WasmBackendOptions } from "./backend.ts";
import { supports, type Variant } from "./loader.ts";

const VARIANTS = (["simd128", "relaxed"] satisfies Variant[]).filter(supports);

async function tinyBackend(
  options: Partial<WasmBackendOptions> = {},
  model: TinyModelOptions = { type: "Q4_1" },
): Promise<Backend> {
  const files = await tinyFiles(model);
  return await createWasmBackend({ files, kvBlocks: 64, topK: 8, ...options });
}

const FORMS = [
  { arithmetic: "int8", kvType: "q8" },
  { arithmetic: "int8", kvType: "f32" },
  { arithmetic: "f32", kvType: "q8" },
] as const;

for (const variant of VARIANTS) {
  for (const { arithmetic, kvType } of FORMS) {
    for (const [behaviour, check] of Object.entries(BACKEND_CHECKS)) {
      Deno.test(`WasmBackend ${variant}, ${arithmetic}, KV ${kvType}: ${behaviour}`, async () => {
        const backend = await tinyBackend({ variant, arithmetic, kvType });
        await check(backend);
        await backend.dispose();
      });
    }
  }
}

Deno.test("WasmBackend gives the same bits with simd128 and relaxed SIMD", {
  ignore: VARIANTS.length < 2,
}, async () => {
  for (const arithmetic of ARITHMETICS) {
    for (const type of ["Q4_1", "Q8_0", "Q6_K", "F16"] satisfies TensorType[]) {
      const results = [];
      for (const variant of VARIANTS) {
        const backend = await tinyBackend({ variant, arithmetic }, { type });
        results.push(await prefill(backend, text(40), blocks(3), 40));
        await backend.dispose();
      }
      assertEquals(results[0], results[1], `${type} in ${arithmetic}`);
    }
  }
});

Deno.test("WasmBackend refuses what does not fit, and computes on", async () => {
  const backend = await tinyBackend(NARROW);
  await assertRefusesAndComputesOn(backend);
  await backend.dispose();
});

Deno.test("createWasmBackend refuses options that are out of range", async () => {
  for (const options of [{ kvBlocks: 0 }, { contextLength: 1.5 }, { threads: -1 }]) {
    const [name, value] = Object.entries(options)[0]!;
    await assertRejects(() => tinyBackend(options), RangeError, `${name} is ${value}`);
  }
  await assertRejects(() => tinyBackend({}, { headSize: 8 }), RangeError, "head size is 8");
  const unknown = { arithmetic: "f64" } as unknown as WasmBackendOptions;
  await assertRejects(() => tinyBackend(unknown), RangeError, "it takes f32, int8");
});

Deno.test("WasmBackend tells by its variant in which arithmetic it computes", async () => {
  for (const [arithmetic, variant] of [["int8", "int8 relaxed"], ["f32", "f32 relaxed"]] as const) {
    const backend = await tinyBackend({ variant: "relaxed", arithmetic });
    assertEquals(backend.describe().variant, variant);
    await backend.dispose();
  }
});

Deno.test("createWasmBackend rejects more KV blocks than the memory holds", async () => {
  const error = await assertRejects(() => tinyBackend({ kvBlocks: 2 ** 28 }), BackendError);
  assertStringIncludes(error.message, "Cannot reserve 268435456 KV blocks");
});

Deno.test("WasmBackend rejects after dispose, and a second dispose does nothing", async () => {
  await assertGoneAfterDispose(await tinyBackend());
});

Deno.test("WasmBackend is of no use after a trap, and says so", async () => {
  const files = await tinyFiles();
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
  await assertShowsNaN((files) => createWasmBackend({ files, kvBlocks: 64 }));
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
  await assertReportsProgress((onProgress) => tinyBackend({ onProgress }));
});
