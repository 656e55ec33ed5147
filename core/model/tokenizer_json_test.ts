import { assertEquals, assertThrows } from "@std/assert";
import { ModelError } from "../errors.ts";
import { tokenizerFromJson } from "./tokenizer_json.ts";
import { type Json, TOKEN_TYPES } from "./tokenizer_spec.ts";

const { normal, unknown, control, userDefined, unused, byte } = TOKEN_TYPES;

const BPE = {
  added_tokens: [
    { id: 0, content: "<s>", special: true, lstrip: false, rstrip: false },
    { id: 6, content: "<tool>", special: false, lstrip: true, rstrip: true },
  ],
  normalizer: null,
  pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
  post_processor: {
    type: "Sequence",
    processors: [{ type: "ByteLevel" }, {
      type: "TemplateProcessing",
      single: [{ SpecialToken: { id: "<s>" } }, { Sequence: { id: "A" } }, {
        SpecialToken: { id: "<tool>" },
      }],
      special_tokens: { "<s>": { ids: [0] }, "<tool>": { ids: [6] } },
    }],
  },
  decoder: { type: "ByteLevel" },
  model: {
    type: "BPE",
    vocab: { "<s>": 0, "<unk>": 1, "a": 2, "b": 3, "ab": 5 },
    merges: [["a", "b"]],
    unk_token: "<unk>",
    fuse_unk: true,
    ignore_merges: true,
  },
};

const read = (file: Json) => tokenizerFromJson(JSON.stringify(file));

Deno.test("tokenizerFromJson reads byte-level BPE", () => {
  const spec = read(BPE);
  assertEquals([...spec.tokens], ["<s>", "<unk>", "a", "b", "", "ab", "<tool>"]);
  assertEquals([...spec.types], [control, unknown, normal, normal, unused, normal, userDefined]);
  assertEquals([spec.spelling, [...spec.merges], spec.cutAtWords], ["bytes", ["a b"], true]);
  assertEquals(spec.model, {
    type: "bpe",
    ignoreMerges: true,
    byteFallback: false,
    fuseUnknown: true,
    unknown: 1,
    continuingPrefix: null,
    wordSuffix: null,
  });
});

Deno.test("tokenizerFromJson reads what goes around a text", () => {
  const { before, after } = read(BPE);
  assertEquals([before, after], [[0], [6]]);
  assertEquals(read({ ...BPE, post_processor: null }).before, []);
});

Deno.test("tokenizerFromJson reads how added tokens treat whitespace", () => {
  assertEquals(
    read(BPE).added.map(({ control, stripLeft, stripRight }) => [control, stripLeft, stripRight]),
    [[true, false, false], [false, true, true]],
  );
});

Deno.test("tokenizerFromJson reads merges written as one text", () => {
  const { merges } = read({ ...BPE, model: { ...BPE.model, merges: ["a b"] } });
  assertEquals([...merges], ["a b"]);
});

Deno.test("tokenizerFromJson reads a SentencePiece vocabulary with byte tokens", () => {
  const spec = read({
    decoder: { type: "Sequence", decoders: [{ type: "ByteFallback" }, { type: "Fuse" }] },
    normalizer: { type: "Prepend", prepend: "▁" },
    model: { type: "BPE", vocab: { "<0x0A>": 0, "▁a": 1 }, merges: [], byte_fallback: true },
  });
  assertEquals([...spec.types], [byte, normal]);
  assertEquals([spec.spelling, spec.cutAtWords], ["spaces", false]);
});

Deno.test("tokenizerFromJson reads a unigram vocabulary", () => {
  const spec = read({ model: { type: "Unigram", vocab: [["<unk>", 0], ["▁a", -2.5]], unk_id: 0 } });
  assertEquals(spec.model, { type: "unigram", unknown: 0, byteFallback: false });
  assertEquals([...spec.scores], [0, -2.5]);
});

Deno.test("tokenizerFromJson names what it cannot use", () => {
  const model = BPE.model;
  const cases: [Json, string][] = [
    [[], "the file"],
    [{}, "model"],
    [{ model: { type: "WordPiece" } }, "model.type"],
    [{ model: { ...model, vocab: { a: 2 ** 40 } } }, "model.vocab"],
    [{ model: { ...model, vocab: { a: -1 } } }, "model.vocab"],
    [{ model: { ...model, merges: [["a b", "c"]] } }, "model.merges[0]"],
    [{ model, added_tokens: [{ id: "0", content: "x" }] }, "added_tokens[0].id"],
    [{ model: { type: "Unigram", vocab: [["a"]] } }, "model.vocab[0]"],
    [{ model: { type: "Unigram", vocab: [["a", 0]], unk_id: 7 } }, "model.unk_id"],
  ];
  for (const [file, key] of cases) {
    assertEquals(assertThrows(() => read(file), ModelError).subject, key);
  }
  assertThrows(() => tokenizerFromJson("{"), ModelError, "tokenizer.json");
});
