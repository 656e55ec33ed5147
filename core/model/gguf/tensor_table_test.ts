import { assertEquals, assertStringIncludes } from "@std/assert";
import { gguf, type GgufTensorSpec, writeGguf } from "../../../tests/support/gguf_writer.ts";
import { modelErrorOf } from "../../../tests/support/model_error.ts";
import { tinyModelSpec } from "../../../tests/support/tiny_model.ts";
import { MemorySource } from "../memory_source.ts";
import { TENSOR_TYPES } from "../tensors.ts";
import { readHeader } from "./header.ts";
import { placeTensors } from "./tensor_table.ts";

const NAME = "blk.0.ffn_up.weight";

/** The tiny model with one of its tensors changed. */
function withTensor(change: Partial<GgufTensorSpec>): Uint8Array {
  const spec = tinyModelSpec();
  const tensors = spec.tensors.map((tensor) =>
    tensor.name === NAME ? { ...tensor, ...change } : tensor
  );
  return writeGguf({ ...spec, tensors });
}

const refused: readonly (readonly [
  name: string,
  change: Partial<GgufTensorSpec>,
  problem: string,
])[] = [
  ["an unknown type", { type: 4000 }, "has type number 4000"],
  ["a type that is not supported", { type: 20 }, "has type IQ4_NL, supported are F32"],
  ["no columns", { dimensions: [0, 64] }, "has an empty dimension, its shape is [0, 64]"],
  ["no rows", { dimensions: [64, 0] }, "has an empty dimension"],
  ["three dimensions", { dimensions: [64, 4, 32] }, "at most two dimensions"],
  ["an empty third dimension", { dimensions: [64, 128, 0] }, "at most two dimensions"],
  ["a torn block", { type: 8, dimensions: [48, 4] }, "needs a multiple of 32"],
  ["2^32 by 2^32 elements", { dimensions: [2 ** 32, 2 ** 32] }, "lies outside the file"],
  ["2^63 by 2 elements", { dimensions: [2n ** 63n, 2n] }, "lies outside the file"],
  ["2^53 + 1 elements", { dimensions: [2n ** 53n + 1n] }, `${4n * (2n ** 53n + 1n)} bytes`],
  ["data past the end", { offset: 1n << 20n }, "lies outside the file"],
  ["an offset near 2^64", { offset: 2n ** 64n - 32n }, "lies outside the file"],
  ["an offset off its alignment", { offset: 4n }, "no multiple of the alignment 32"],
];

for (const [name, change, problem] of refused) {
  Deno.test(`placeTensors refuses a tensor with ${name}`, async () => {
    const error = await modelErrorOf(withTensor(change));
    assertEquals(error.subject, NAME);
    assertStringIncludes(error.message, problem);
  });
}

Deno.test("placeTensors refuses tensors that overlap", async () => {
  const error = await modelErrorOf(withTensor({ offset: 32n }));
  assertStringIncludes(error.message, `${NAME} overlaps tensor token_embd.weight`);
});

Deno.test("placeTensors refuses a file without the end of its last tensor", async () => {
  const spec = tinyModelSpec();
  const error = await modelErrorOf(writeGguf(spec).slice(0, -32));
  assertEquals(error.subject, "output_norm.weight");
});

for (const alignment of [0, 1, 3, 24, 2 ** 30, 2 ** 31]) {
  Deno.test(`placeTensors refuses an alignment of ${alignment}`, async () => {
    const { metadata, tensors } = tinyModelSpec();
    const pair = ["general.alignment", gguf.uint32(alignment)] as const;
    const error = await modelErrorOf(writeGguf({ metadata: [...metadata, pair], tensors }));
    assertEquals(error.subject, "general.alignment");
    assertStringIncludes(error.message, `current value is ${alignment}`);
  });
}

Deno.test("placeTensors refuses an alignment of another type", async () => {
  const { metadata, tensors } = tinyModelSpec();
  const pair = ["general.alignment", gguf.text("32")] as const;
  const error = await modelErrorOf(writeGguf({ metadata: [...metadata, pair], tensors }));
  assertStringIncludes(error.message, "general.alignment must be of type uint32");
});

for (const alignment of [8, 32, 4096]) {
  Deno.test(`placeTensors finds the data at an alignment of ${alignment}`, async () => {
    const { metadata, tensors } = tinyModelSpec({ type: "Q4_0" });
    const pair = ["general.alignment", gguf.uint32(alignment)] as const;
    const file = writeGguf({ metadata: [...metadata, pair], tensors, alignment });
    const source = new MemorySource("f", file);
    const placed = placeTensors(source, 0, await readHeader(source));
    assertEquals(placed.map(({ name }) => name), tensors.map(({ name }) => name));
    placed.forEach(({ offset, byteLength }, i) => {
      assertEquals(file.subarray(offset, offset + byteLength), tensors[i]!.data);
    });
  });
}

Deno.test("placeTensors gives shapes as columns and rows, and skips trailing ones", async () => {
  const data = new Uint8Array(34 * 6);
  const dimensions = [64, 3, 1, 1];
  const file = writeGguf({
    tensors: [{ name: "t", dimensions, type: TENSOR_TYPES.Q8_0.id, data }],
  });
  const source = new MemorySource("f", file);
  const [tensor] = placeTensors(source, 5, await readHeader(source));
  assertEquals(tensor, {
    name: "t",
    type: "Q8_0",
    columns: 64,
    rows: 3,
    source: 5,
    offset: file.length - 224,
    byteLength: 204,
  });
});
