import { assert, assertEquals, assertLess, assertNotEquals } from "@std/assert";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { dequantise } from "./dequantise.ts";
import { fromHalf, toHalf } from "./half.ts";
import { quantise } from "./quantise.ts";
import { normals, randomNumbers } from "./random.ts";
import { tinyModel } from "./tiny_model.ts";

const TYPES = Object.keys(TENSOR_TYPES) as TensorType[];

for (const type of TYPES) {
  Deno.test(`tinyModel opens with matrices of type ${type}, below 2 MB`, async () => {
    const bytes = tinyModel({ type });
    assertLess(bytes.length, type === "F32" ? 500_000 : 2_000_000);
    const { files } = await openModel([new MemorySource("tiny.gguf", bytes)]);
    assertEquals(files.tensors.get("blk.1.ffn_down.weight")?.type, type);
    assertEquals(files.config.vocabularySize, 317);
    assertEquals(files.config.endTokens, [0, 2]);
    assert(files.config.tiedOutput);
  });

  Deno.test(`quantise to ${type} and dequantise give nearly the same values`, () => {
    const values = normals(1024, 1, randomNumbers(7));
    const decoded = dequantise(type, quantise(type, values));
    const bits = 8 * TENSOR_TYPES[type].blockBytes / TENSOR_TYPES[type].blockSize;
    const power = values.reduce((sum, value) => sum + value ** 2, 0);
    const noise = values.reduce((sum, value, i) => sum + (value - decoded[i]!) ** 2, 0);
    // Each bit beyond the block's overhead quarters the noise; 4.5 bits leave about 1 %.
    assertLess(noise / power, Math.max(0.3 * 4 ** (3.5 - bits), 1e-5));
  });

  Deno.test(`quantise to ${type} keeps a block of zeros`, () => {
    const zeros = new Float32Array(256);
    assertEquals(dequantise(type, quantise(type, zeros)).map(Math.abs), zeros);
  });
}

Deno.test("tinyModel is the same for the same seed, and another for another", () => {
  const first = tinyModel({ type: "Q8_0" });
  assertEquals(tinyModel({ type: "Q8_0" }), first);
  assertNotEquals(tinyModel({ type: "Q8_0", seed: 2 }), first);
});

Deno.test("toHalf and fromHalf agree on every finite half", () => {
  for (let bits = 0; bits < 0x10000; bits++) {
    if (((bits >> 10) & 31) !== 31) assertEquals(toHalf(fromHalf(bits)), bits);
  }
  assertEquals(toHalf(65520), 0x7c00);
  assertEquals(toHalf(1 + 1 / 2048), toHalf(1));
});
