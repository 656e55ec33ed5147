import { assertEquals, assertStringIncludes } from "@std/assert";
import { type EncodedValue, gguf, writeGguf } from "../../tests/support/gguf_writer.ts";
import { modelErrorOf } from "../../tests/support/model_error.ts";
import { tinyModel, type TinyModelOptions, tinyModelSpec } from "../../tests/support/tiny_model.ts";
import type { ModelConfig } from "./config.ts";
import { openModel } from "./gguf/open_model.ts";
import { MemorySource } from "./memory_source.ts";

async function configOf(options: TinyModelOptions): Promise<ModelConfig> {
  return (await openModel([new MemorySource("models/tiny.gguf", tinyModel(options))])).files.config;
}

/** The tiny model without these metadata keys, and with these pairs. */
function without(keys: readonly string[], pairs: readonly [string, EncodedValue][] = []) {
  const { metadata, tensors } = tinyModelSpec();
  const kept = metadata.filter(([key]) => !keys.includes(key));
  return writeGguf({ metadata: [...kept, ...pairs], tensors });
}

const f = (name: string, value: number) => [`llama.${name}`, gguf.float32(value)] as const;
const u = (name: string, value: number) => [`llama.${name}`, gguf.uint32(value)] as const;
const t = (name: string, value: string) => [`llama.${name}`, gguf.text(value)] as const;

Deno.test("readModelConfig reads the shape of the tiny model", async () => {
  assertEquals(await configOf({ untied: true }), {
    architecture: "llama",
    name: "Tiny F32",
    layers: 2,
    hiddenSize: 64,
    feedForwardSize: 128,
    heads: 4,
    kvHeads: 2,
    headSize: 16,
    vocabularySize: 317,
    contextLength: 256,
    rmsEpsilon: Math.fround(1e-5),
    rope: { base: 10000, dimensions: 16, scaling: { type: "none" } },
    tiedOutput: false,
    endTokens: [0, 2],
  });
});

Deno.test("readModelConfig fills in what the metadata leaves out", async () => {
  const bytes = without([
    "general.name",
    "llama.attention.key_length",
    "llama.attention.value_length",
    "llama.rope.freq_base",
    "llama.rope.dimension_count",
    "llama.vocab_size",
  ]);
  const { files } = await openModel([new MemorySource("models/tiny.gguf", bytes)]);
  const { name, headSize, rope } = files.config;
  assertEquals(name, "tiny");
  assertEquals(headSize, 16);
  assertEquals(rope, { base: 10000, dimensions: 16, scaling: { type: "none" } });
});

Deno.test("readModelConfig takes as many KV heads as heads where the metadata has none", async () => {
  const { metadata, tensors } = tinyModelSpec({ kvHeads: 4 });
  const kept = metadata.filter(([key]) => key !== "llama.attention.head_count_kv");
  const source = new MemorySource("tiny.gguf", writeGguf({ metadata: kept, tensors }));
  assertEquals((await openModel([source])).files.config.kvHeads, 4);
});

Deno.test("readModelConfig takes heads of a size of their own", async () => {
  const { headSize, hiddenSize, heads } = await configOf({ headSize: 64 });
  assertEquals([headSize, hiddenSize, heads], [64, 64, 4]);
});

const scalings: readonly [string, TinyModelOptions["metadata"] & object, unknown][] = [
  ["none", [t("rope.scaling.type", "none"), f("rope.scaling.factor", 4)], { type: "none" }],
  ["linear", [t("rope.scaling.type", "linear"), f("rope.scaling.factor", 4)], {
    type: "linear",
    factor: 4,
  }],
  ["the early name of linear", [f("rope.scale_linear", 2)], { type: "linear", factor: 2 }],
  ["YaRN with defaults", [t("rope.scaling.type", "yarn"), f("rope.scaling.factor", 8)], {
    type: "yarn",
    factor: 8,
    originalContext: 256,
    attentionFactor: 1,
    betaFast: 32,
    betaSlow: 1,
  }],
  ["YaRN", [
    t("rope.scaling.type", "yarn"),
    f("rope.scaling.factor", 8),
    u("rope.scaling.original_context_length", 64),
    f("rope.scaling.attn_factor", 0.5),
    f("rope.scaling.yarn_beta_fast", 16),
    f("rope.scaling.yarn_beta_slow", 2),
  ], {
    type: "yarn",
    factor: 8,
    originalContext: 64,
    attentionFactor: 0.5,
    betaFast: 16,
    betaSlow: 2,
  }],
];

for (const [name, metadata, scaling] of scalings) {
  Deno.test(`readModelConfig reads RoPE scaling: ${name}`, async () => {
    assertEquals((await configOf({ metadata })).rope.scaling, scaling);
  });
}

const refused: readonly (readonly [key: string, value: EncodedValue, problem: string])[] = [
  ["general.architecture", gguf.text("mamba"), 'is "mamba", supported: llama'],
  ["general.architecture", gguf.text("__proto__"), 'is "__proto__", supported: llama'],
  ["llama.expert_count", gguf.uint32(8), "mixtures of experts are not supported"],
  [
    "llama.attention.head_count",
    gguf.uint32(0),
    "must be from 1 to 2147483647, current value is 0",
  ],
  ["llama.attention.head_count_kv", gguf.uint32(0), "current value is 0"],
  ["llama.attention.head_count_kv", gguf.uint32(3), "must divide the head count 4"],
  ["llama.attention.head_count_kv", gguf.int32s([2, 2]), "current value is an array of 2 int32"],
  ["llama.attention.key_length", gguf.uint32(0), "current value is 0"],
  ["llama.attention.value_length", gguf.uint32(32), "must equal the key length 16"],
  ["llama.block_count", gguf.uint32(2 ** 31), "current value is 2147483648"],
  ["llama.context_length", gguf.uint32(0), "current value is 0"],
  ["llama.embedding_length", gguf.text("64"), "must be an integer"],
  ["llama.attention.layer_norm_rms_epsilon", gguf.float32(0), "must be above 0"],
  ["llama.attention.layer_norm_rms_epsilon", gguf.float32(NaN), "current value is float32 NaN"],
  ["llama.rope.dimension_count", gguf.uint32(15), "must be even and at most the head size 16"],
  ["llama.rope.dimension_count", gguf.uint32(18), "must be even and at most the head size 16"],
  ["llama.rope.freq_base", gguf.float32(1), "must be above 1"],
  ["llama.rope.scaling.factor", gguf.float32(-2), "must be above 0"],
  ["llama.rope.scaling.type", gguf.text("longrope"), "supported: none, linear, yarn"],
  ["tokenizer.ggml.eos_token_id", gguf.uint32(317), "must be below the vocabulary size 317"],
  ["tokenizer.ggml.bos_token_id", gguf.uint32(2 ** 32 - 1), "current value is 4294967295"],
  ["tokenizer.ggml.mask_token_id", gguf.uint32(9999), "current value is 9999"],
  ["tokenizer.ggml.token_type", gguf.int32s([1]), "an entry for each of the 317 tokens"],
];

for (const [key, value, problem] of refused) {
  Deno.test(`readModelConfig refuses ${key}: ${problem}`, async () => {
    const error = await modelErrorOf(tinyModel({ metadata: [[key, value]] }));
    assertEquals(error.subject, key);
    assertStringIncludes(error.message, `Cannot use part-0.gguf: ${key} `);
    assertStringIncludes(error.message, problem);
  });
}

Deno.test("readModelConfig refuses heads that do not divide the width", async () => {
  const error = await modelErrorOf(
    without(["llama.attention.key_length", "llama.attention.head_count"], [
      ["llama.attention.head_count", gguf.uint32(6)],
    ]),
  );
  assertStringIncludes(error.message, "must divide the embedding length 64");
});

Deno.test("readModelConfig names a missing key", async () => {
  for (const name of ["block_count", "embedding_length", "attention.head_count"]) {
    const error = await modelErrorOf(without([`llama.${name}`]));
    assertEquals(error.subject, `llama.${name}`);
    assertStringIncludes(error.message, "is missing");
  }
});
