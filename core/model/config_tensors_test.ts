import { assertEquals, assertStringIncludes } from "@std/assert";
import { gguf, type GgufTensorSpec, writeGguf } from "../../tests/support/gguf_writer.ts";
import { modelErrorOf } from "../../tests/support/model_error.ts";
import { tinyModel, tinyModelSpec } from "../../tests/support/tiny_model.ts";
import { openModel } from "./gguf/open_model.ts";
import { MemorySource } from "./memory_source.ts";

const spec = tinyModelSpec({ untied: true });

/** The tiny model after a change to its tensors. */
function changed(change: (tensors: GgufTensorSpec[]) => GgufTensorSpec[]): Uint8Array {
  return writeGguf({ ...spec, tensors: change([...spec.tensors]) });
}

Deno.test("checkTensors names each tensor that is missing", async () => {
  for (const { name } of spec.tensors) {
    if (name === "output.weight") continue;
    const error = await modelErrorOf(
      changed((all) => all.filter((tensor) => tensor.name !== name)),
    );
    assertEquals(error.subject, name);
    assertStringIncludes(error.message, `${name} is missing`);
  }
});

Deno.test("checkTensors refuses each tensor when a row is left out", async () => {
  for (const { name } of spec.tensors) {
    const error = await modelErrorOf(changed((all) =>
      all.map((tensor) => {
        if (tensor.name !== name) return tensor;
        const [columns = 0, rows] = tensor.dimensions;
        const dimensions = rows === undefined ? [Number(columns) - 1] : [columns, Number(rows) - 1];
        return { ...tensor, dimensions };
      })
    ));
    assertEquals(error.subject, name);
    assertStringIncludes(error.message, "must have shape [");
  }
});

for (
  const name of [
    "blk.0.attn_q.bias",
    "blk.1.attn_qkv.weight",
    "blk.2.attn_q.weight",
    "blk.00.attn_q.weight",
    "constructor",
  ]
) {
  Deno.test(`checkTensors refuses the surplus tensor ${name}`, async () => {
    const surplus = { name, dimensions: [8], type: 0, data: new Uint8Array(32) };
    const error = await modelErrorOf(changed((all) => [...all, surplus]));
    assertEquals(error.subject, name);
    assertStringIncludes(error.message, "is no part of a llama model with 2 layers");
  });
}

Deno.test("checkTensors names the fused tensor where parts are missing for it", async () => {
  const error = await modelErrorOf(
    changed((all) =>
      all.map((tensor) =>
        tensor.name === "blk.0.attn_q.weight"
          ? { ...tensor, name: "blk.0.attn_qkv.weight" }
          : tensor
      )
    ),
  );
  assertEquals(error.subject, "blk.0.attn_qkv.weight");
});

Deno.test("checkTensors refuses a vector that is not F32", async () => {
  const error = await modelErrorOf(
    changed((all) =>
      all.map((tensor) => tensor.name === "output_norm.weight" ? { ...tensor, type: 1 } : tensor)
    ),
  );
  assertStringIncludes(error.message, "output_norm.weight must have type F32 as a vector");
});

Deno.test("checkTensors finds the first of very many missing layers at once", async () => {
  const pair = ["llama.block_count", gguf.uint32(2 ** 31 - 1)] as const;
  const error = await modelErrorOf(tinyModel({ metadata: [pair] }));
  assertEquals(error.subject, "blk.2.attn_norm.weight");
});

Deno.test("checkTensors refuses a vocabulary of another size than the embedding", async () => {
  const { metadata, tensors } = tinyModelSpec({
    metadata: [["tokenizer.ggml.tokens", gguf.strings(["a", "b", "c"])], [
      "tokenizer.ggml.token_type",
      gguf.int32s([1, 1, 1]),
    ]],
  });
  const error = await modelErrorOf(writeGguf({ metadata, tensors }));
  assertEquals(error.subject, "token_embd.weight");
  assertStringIncludes(error.message, "must have shape [64, 3], current shape is [64, 317]");
});

Deno.test("checkTensors accepts the factors of RoPE frequencies", async () => {
  const ropeFactors = Array.from({ length: 8 }, (_, i) => 1 + i);
  const source = new MemorySource("tiny.gguf", tinyModel({ ropeFactors }));
  assertEquals((await openModel([source])).files.tensors.get("rope_freqs.weight")?.columns, 8);
  const error = await modelErrorOf(tinyModel({ ropeFactors: [1, 2, 3] }));
  assertEquals(error.subject, "rope_freqs.weight");
});
