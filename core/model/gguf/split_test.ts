import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  type EncodedValue,
  gguf,
  type GgufTensorSpec,
  writeGguf,
} from "../../../tests/support/gguf_writer.ts";
import { modelErrorOf } from "../../../tests/support/model_error.ts";
import { tinyModelSpec } from "../../../tests/support/tiny_model.ts";
import { MemorySource } from "../memory_source.ts";
import { openModel } from "./open_model.ts";

const { metadata, tensors } = tinyModelSpec({ type: "Q8_0" });

const splitPairs = (number: number, count: number, total = tensors.length) =>
  [
    ["split.no", gguf.raw("uint16", Uint8Array.of(number, 0))],
    ["split.count", gguf.raw("uint16", Uint8Array.of(count, 0))],
    ["split.tensors.count", gguf.raw("int32", Uint8Array.of(total, 0, 0, 0))],
  ] as [string, EncodedValue][];

/** The tiny model in three files. */
function parts(): [Uint8Array, Uint8Array, Uint8Array] {
  const cut = (from: number, to: number): GgufTensorSpec[] => tensors.slice(from, to);
  return [
    writeGguf({ metadata: [...metadata, ...splitPairs(0, 3)], tensors: [] }),
    writeGguf({ metadata: splitPairs(1, 3), tensors: cut(0, 7) }),
    writeGguf({ metadata: splitPairs(2, 3), tensors: cut(7, tensors.length) }),
  ];
}

Deno.test("openModel joins the parts of a split model, in any order", async () => {
  const [first, second, third] = parts();
  const files = [third, first, second];
  const sources = files.map((bytes, i) => new MemorySource(`${i}`, bytes));
  const model = await openModel(sources);
  assertEquals(model.files.sources.map(({ name }) => name), ["1", "2", "0"]);
  assertEquals(model.metadata.file, "1");
  for (const { name, data } of tensors) {
    const tensor = model.files.tensors.get(name)!;
    const target = new Uint8Array(tensor.byteLength);
    await model.files.sources[tensor.source]!.read(tensor.offset, target);
    assertEquals(target, data);
  }
});

const refused:
  readonly (readonly [string, () => Uint8Array[], subject: string, problem: string])[] = [
    ["no files", () => [], "files", "no file was given"],
    ["a missing part", () => parts().slice(0, 2), "split.count", "has 3 files, 2 were given"],
    ["a single part", () => parts().slice(0, 1), "split.count", "has 3 files, 1 were given"],
    [
      "a part twice",
      () => {
        const [first, second] = parts();
        return [first, second, second];
      },
      "split.no",
      "is 1, and so is that of part-1.gguf",
    ],
    [
      "a part number out of range",
      () => [writeGguf({ metadata: [...metadata, ...splitPairs(5, 1)], tensors })],
      "split.no",
      "is 5, but split.count is 1",
    ],
    [
      "another number of tensors",
      () => [writeGguf({ metadata: [...metadata, ...splitPairs(0, 1, 99)], tensors })],
      "split.tensors.count",
      `has 99 tensors, its files have ${tensors.length}`,
    ],
    [
      "two whole models",
      () => [writeGguf({ metadata, tensors }), writeGguf({ metadata, tensors })],
      "split.count",
      "has 1 files, 2 were given",
    ],
    [
      "a tensor in two parts",
      () => [
        writeGguf({
          metadata: [...metadata, ...splitPairs(0, 2, 2)],
          tensors: tensors.slice(0, 1),
        }),
        writeGguf({ metadata: splitPairs(1, 2, 2), tensors: tensors.slice(0, 1) }),
      ],
      "token_embd.weight",
      "is also in another file",
    ],
  ];

for (const [name, files, subject, problem] of refused) {
  Deno.test(`openModel refuses ${name}`, async () => {
    const error = await modelErrorOf(...files());
    assertEquals(error.subject, subject);
    assertStringIncludes(error.message, problem);
  });
}
