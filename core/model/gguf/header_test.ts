import { assert, assertEquals, assertLessOrEqual, assertStringIncludes } from "@std/assert";
import {
  concat,
  gguf,
  type GgufTensorSpec,
  stringBytes,
  u32Bytes,
  u64Bytes,
  writeGguf,
} from "../../../tests/support/gguf_writer.ts";
import { modelErrorOf } from "../../../tests/support/model_error.ts";
import { tinyModel, tinyModelSpec } from "../../../tests/support/tiny_model.ts";
import type { ByteSource } from "../source.ts";
import { PackedStrings } from "../packed_strings.ts";
import { MemorySource } from "../memory_source.ts";
import { readHeader } from "./header.ts";

/** Checks that a file is refused, the error naming `subject` and saying `problem`. */
function refuses(name: string, file: () => Uint8Array, subject: string, problem: string): void {
  Deno.test(`readHeader refuses ${name}`, async () => {
    const error = await modelErrorOf(file());
    assertEquals(error.subject, subject);
    assertStringIncludes(error.message, `Cannot read part-0.gguf: ${subject}`);
    assertStringIncludes(error.message, problem);
  });
}

const withPair = (value: ReturnType<typeof gguf.text>, key = "x"): Uint8Array =>
  writeGguf({ metadata: [[key, value]] });

const withTensor = (change: Partial<GgufTensorSpec>): Uint8Array =>
  writeGguf({
    tensors: [{ name: "t", dimensions: [1], type: 0, data: new Uint8Array(4), ...change }],
  });

/** Where the length of the first key stands: after magic, version and two counts. */
const FIRST_KEY = 24;

refuses("an empty file", () => new Uint8Array(0), "header", "cut off");
refuses("another magic", () => writeGguf({ magic: "GGML" }), "header", "does not start with GGUF");
refuses("version 1", () => writeGguf({ version: 1 }), "header", "version 1, supported are 2 and 3");
refuses("version 4", () => writeGguf({ version: 4 }), "header", "version 4");
refuses("big endian", () => writeGguf({ version: 0x03000000 }), "header", "big endian");

for (const count of [2n ** 32n, 2n ** 40n, 2n ** 63n, 2n ** 64n - 1n]) {
  refuses(
    `${count} tensors`,
    () => writeGguf({ tensorCount: count }),
    "header",
    `has ${count} tensors`,
  );
  refuses(
    `${count} pairs`,
    () => writeGguf({ pairCount: count }),
    "header",
    `has ${count} metadata pairs`,
  );
  refuses(
    `a string of ${count} bytes`,
    () => withPair(gguf.raw("string", stringBytes("abc", count))),
    "x",
    `has ${count} bytes of text`,
  );
  refuses(
    `an array of ${count} strings`,
    () => withPair(gguf.array(8, [stringBytes("a")], count)),
    "x",
    `has ${count} strings`,
  );
  refuses(
    `an array of ${count} numbers`,
    () => withPair(gguf.array(5, [u32Bytes(1)], count)),
    "x",
    `has ${count} int32 elements`,
  );
  refuses(
    `a string of ${count} bytes in an array`,
    () => withPair(gguf.array(8, [stringBytes("a"), stringBytes("b", count)])),
    "x",
    `has ${count} bytes in string 1`,
  );
  refuses(
    `a key of ${count} bytes`,
    () => {
      const file = writeGguf({ metadata: [["key", gguf.bool(true)]] });
      file.set(u64Bytes(count), FIRST_KEY);
      return file;
    },
    "metadata key 0",
    `has ${count} bytes of text`,
  );
}

refuses("value type 13", () => withPair(gguf.raw(13, u64Bytes(0))), "x", "value type 13");
refuses("element type 99", () => withPair(gguf.array(99, [])), "x", "value type 99");
refuses(
  "arrays nested too deep",
  () => {
    let nested = gguf.array(4, [u32Bytes(1)]);
    for (let depth = 0; depth < 10_000; depth++) nested = gguf.array(9, [nested.bytes]);
    return withPair(nested);
  },
  "x",
  "deeper than 4",
);
refuses("a boolean of 2", () => withPair(gguf.raw("bool", Uint8Array.of(2))), "x", "boolean");
refuses(
  "text that is not UTF-8",
  () => {
    return withPair(gguf.raw("string", concat([u64Bytes(1), Uint8Array.of(0xff)])));
  },
  "x",
  "not UTF-8",
);
refuses(
  "a character torn over two strings",
  () => {
    // The two halves of é make valid text only when they are joined.
    const [first, second] = [[0xc3], [0xa9]].map((half) =>
      concat([u64Bytes(1), Uint8Array.from(half)])
    );
    return withPair(gguf.array(8, [first!, second!]));
  },
  "x",
  "not UTF-8, number 1",
);
refuses("an empty key", () => withPair(gguf.bool(true), ""), "metadata key 0", "0 characters");
refuses(
  "a key twice",
  () => writeGguf({ metadata: [["k", gguf.bool(true)], ["k", gguf.bool(true)]] }),
  "k",
  "appears twice",
);
refuses("an empty tensor name", () => withTensor({ name: "" }), "tensor 0", "no name");
refuses(
  "a tensor twice",
  () => {
    const tensor = { name: "t", dimensions: [1], type: 0, data: new Uint8Array(4) };
    return writeGguf({ tensors: [tensor, tensor] });
  },
  "t",
  "appears twice",
);
refuses("no dimensions", () => withTensor({ dimensions: [] }), "t", "has 0 dimensions");
refuses(
  "five dimensions",
  () => withTensor({ dimensions: [1, 1, 1, 1, 1] }),
  "t",
  "has 5 dimensions",
);

Deno.test("readHeader refuses the tiny model cut off anywhere in its header", async () => {
  const bytes = tinyModel({ layers: 1 });
  const { byteLength } = await readHeader(new MemorySource("tiny.gguf", bytes));
  for (let length = 0; length < byteLength; length++) {
    await modelErrorOf(bytes.subarray(0, length));
  }
});

Deno.test("readHeader reads version 2 like version 3", async () => {
  const spec = tinyModelSpec();
  const two = await readHeader(new MemorySource("2", writeGguf({ ...spec, version: 2 })));
  const three = await readHeader(new MemorySource("3", writeGguf({ ...spec, version: 3 })));
  assertEquals(two.metadata, three.metadata);
  assertEquals(two.tensors, three.tensors);
});

Deno.test("readHeader keeps values of every type exactly", async () => {
  const bytes = (array: ArrayBufferView) => new Uint8Array(array.buffer as ArrayBuffer);
  const file = writeGguf({
    metadata: [
      ["u8", gguf.raw("uint8", Uint8Array.of(255))],
      ["i8", gguf.raw("int8", Uint8Array.of(255))],
      ["i16", gguf.raw("int16", bytes(Int16Array.of(-300)))],
      ["u64", gguf.raw("uint64", u64Bytes(2n ** 64n - 1n))],
      ["i64", gguf.raw("int64", u64Bytes(2n ** 64n - 1n))],
      ["f64", gguf.raw("float64", bytes(Float64Array.of(0.1)))],
      ["yes", gguf.bool(true)],
      ["text", gguf.text("\uFEFFé👍")],
      ["texts", gguf.strings(["", "\uFEFFa", "é👍", "", "b"])],
      ["nested", gguf.array(9, [gguf.array(8, [stringBytes("in")]).bytes])],
      ["i64s", gguf.array(11, [u64Bytes(2n ** 64n - 5n)])],
    ],
  });
  const { metadata } = await readHeader(new MemorySource("f", file));
  const values = [...metadata.values()].map((value) =>
    value.type === "array" ? value.elements : value.value
  );
  assertEquals(values, [
    255,
    -1,
    -300,
    2n ** 64n - 1n,
    -1n,
    0.1,
    true,
    "\uFEFFé👍",
    PackedStrings.from(["", "\uFEFFa", "é👍", "", "b"]),
    [{ type: "array", elementType: "string", elements: PackedStrings.from(["in"]) }],
    BigInt64Array.of(-5n),
  ]);
});

Deno.test("readHeader reads a header beyond its first window, and little more", async () => {
  const texts = Array.from({ length: 300_000 }, (_, i) => `token ${i}`);
  const header = writeGguf({
    metadata: [["first", gguf.uint32(1)], ["texts", gguf.strings(texts)], ["last", gguf.uint32(2)]],
  });
  const file = concat([header, new Uint8Array(8 * header.length)]);
  let bytesRead = 0;
  const inner = new MemorySource("large.gguf", file);
  const source: ByteSource = {
    name: inner.name,
    size: inner.size,
    read(offset, target) {
      assertEquals(offset, bytesRead, "no byte is read twice");
      bytesRead += target.length;
      return inner.read(offset, target);
    },
    close: () => inner.close(),
  };
  const { metadata } = await readHeader(source);
  assertEquals(metadata.get("texts"), {
    type: "array",
    elementType: "string",
    elements: PackedStrings.from(texts),
  });
  assertEquals([...metadata.keys()], ["first", "texts", "last"]);
  assert(header.length > 2 ** 22);
  assertLessOrEqual(bytesRead, 2 * header.length);
});
