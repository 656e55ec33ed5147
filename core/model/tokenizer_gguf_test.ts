import { assertEquals, assertThrows } from "@std/assert";
import { ModelError } from "../errors.ts";
import { GgufMetadata } from "./gguf/metadata.ts";
import type { GgufValue } from "./gguf/values.ts";
import { PackedStrings } from "./packed_strings.ts";
import { tokenizerFromGguf } from "./tokenizer_gguf.ts";
import { TOKEN_TYPES } from "./tokenizer_spec.ts";

const strings = (elements: string[]): GgufValue => ({
  type: "array",
  elementType: "string",
  elements: PackedStrings.from(elements),
});
const text = (value: string): GgufValue => ({ type: "string", value });
const uint = (value: number): GgufValue => ({ type: "uint32", value });
const bool = (value: boolean): GgufValue => ({ type: "bool", value });
const types = (...elements: number[]): GgufValue => ({
  type: "array",
  elementType: "int32",
  elements: Int32Array.from(elements),
});

function read(values: Record<string, GgufValue>) {
  const entries = Object.entries(values).map(([key, value]) =>
    [`tokenizer.ggml.${key}`, value] as const
  );
  return tokenizerFromGguf(new GgufMetadata("x.gguf", new Map(entries)));
}

const GPT2 = {
  model: text("gpt2"),
  pre: text("smollm"),
  tokens: strings(["<|end|>", "a", "b", "ab", "<tool>", "[PAD]"]),
  token_type: types(3, 1, 1, 1, 4, 5),
  merges: strings(["a b"]),
};

const LLAMA = {
  model: text("llama"),
  tokens: strings(["<unk>", "<s>", "</s>", "▁a"]),
  token_type: types(2, 3, 3, 1),
  scores: {
    type: "array",
    elementType: "float32",
    elements: Float32Array.of(0, 0, 0, -1),
  } as GgufValue,
  bos_token_id: uint(1),
  eos_token_id: uint(2),
  unknown_token_id: uint(0),
};

Deno.test("tokenizerFromGguf reads a byte-level vocabulary", () => {
  const spec = read(GPT2);
  assertEquals(spec.spelling, "bytes");
  assertEquals([...spec.merges], ["a b"]);
  assertEquals(spec.added.map(({ id, control }) => [id, control]), [[0, true], [4, false]]);
  assertEquals([spec.before, spec.after], [[], []]);
});

Deno.test("tokenizerFromGguf adds BOS and EOS as the metadata says", () => {
  const both = { bos_token_id: uint(0), eos_token_id: uint(5), add_bos_token: bool(true) };
  assertEquals(read({ ...GPT2, ...both }).before, [0]);
  assertEquals(read({ ...GPT2, ...both, add_eos_token: bool(true) }).after, [5]);
  assertEquals(read({ ...GPT2, ...both, add_bos_token: bool(false) }).before, []);
});

Deno.test("tokenizerFromGguf adds BOS by default where the kind of model wants it", () => {
  const llama3 = { ...GPT2, pre: text("llama-bpe"), bos_token_id: uint(0) };
  assertEquals(read(llama3).before, [0]);
  assertEquals(read({ ...GPT2, bos_token_id: uint(0) }).before, []);
  assertEquals(read(LLAMA).before, [1]);
});

Deno.test("tokenizerFromGguf takes well-known control tokens for such whatever their type", () => {
  const tokens = strings(["<|im_end|>", "a", "b", "ab", "<tool>", "</s>"]);
  const spec = read({ ...GPT2, tokens, token_type: types(4, 1, 1, 1, 4, 1) });
  assertEquals(spec.added.map(({ id, control }) => [id, control]), [[0, true], [4, false], [
    5,
    true,
  ]]);
});

Deno.test("tokenizerFromGguf takes the tokens that end a text for control tokens", () => {
  const spec = read({ ...GPT2, token_type: types(1, 1, 1, 1, 4, 4), eos_token_id: uint(0) });
  assertEquals(spec.types[0], TOKEN_TYPES.control);
});

Deno.test("tokenizerFromGguf reads a SentencePiece vocabulary", () => {
  const spec = read(LLAMA);
  assertEquals(spec.spelling, "spaces");
  assertEquals(spec.model, { type: "sentencePiece", spacePrefix: true, unknown: 0, bytes: [] });
  assertEquals([...spec.scores], [0, 0, 0, -1]);
});

Deno.test("tokenizerFromGguf finds the byte tokens where all are there", () => {
  const byteTexts = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
  );
  const spec = read({
    ...LLAMA,
    tokens: strings(["<unk>", "<s>", "</s>", ...byteTexts]),
    token_type: types(2, 3, 3, ...byteTexts.map(() => 6)),
    scores: { type: "array", elementType: "float32", elements: new Float32Array(259) },
  });
  const bytes = spec.model.type === "sentencePiece" ? spec.model.bytes : [];
  assertEquals([bytes.length, bytes[0], bytes[255]], [256, 3, 258]);
});

Deno.test("tokenizerFromGguf names the key that it cannot use", () => {
  const cases: [Record<string, GgufValue>, string][] = [
    [{ ...GPT2, model: text("bert") }, "tokenizer.ggml.model"],
    [{ ...GPT2, pre: text("toString") }, "tokenizer.ggml.pre"],
    [{ ...GPT2, token_type: types(1) }, "tokenizer.ggml.token_type"],
    [{ ...GPT2, eos_token_id: uint(6) }, "tokenizer.ggml.eos_token_id"],
    [{ ...LLAMA, unknown_token_id: uint(4) }, "tokenizer.ggml.unknown_token_id"],
    [{ model: text("gpt2"), tokens: strings([]) }, "tokenizer.ggml.merges"],
    [{ ...LLAMA, scores: strings([]) }, "tokenizer.ggml.scores"],
    [
      { ...LLAMA, scores: { ...LLAMA.scores, elements: new Float32Array(3) } as GgufValue },
      "tokenizer.ggml.scores",
    ],
  ];
  for (const [values, key] of cases) {
    const error = assertThrows(() => read(values), ModelError, key);
    assertEquals(error.subject, key);
  }
});
