import { assertEquals, assertRejects } from "@std/assert";
import * as fc from "fast-check";
import { ModelError } from "../core/errors.ts";
import { PackedStrings } from "../core/model/packed_strings.ts";
import { SPLIT_KINDS, splitAndMapBytes } from "../core/model/tokenizer_splits.ts";
import { TOKEN_TYPES, type TokenizerSpec } from "../core/model/tokenizer_spec.ts";
import { tinyVocabulary } from "../tests/support/tiny_vocabulary.ts";
import { createTokenizer } from "./tokenizer.ts";

const { normal, unknown, control, userDefined, byte } = TOKEN_TYPES;

/** The tiny model's vocabulary, cut into words in the way of `kind`. */
function byteLevelSpec(kind: keyof typeof SPLIT_KINDS): TokenizerSpec {
  const { tokens, merges } = tinyVocabulary();
  const splits = SPLIT_KINDS[kind] ?? { expressions: [] };
  return {
    tokens: PackedStrings.from(tokens),
    types: Uint8Array.from(tokens, (_, id) => id < 3 ? control : normal),
    spelling: "bytes",
    scores: new Float32Array(),
    merges: PackedStrings.from(merges),
    model: {
      type: "bpe",
      ignoreMerges: splits.ignoreMerges ?? false,
      byteFallback: false,
      fuseUnknown: false,
      unknown: null,
      continuingPrefix: null,
      wordSuffix: null,
    },
    normalizer: null,
    preTokenizer: splitAndMapBytes(splits),
    cutAtWords: true,
    added: tokens.slice(0, 3).map((text, id) => (
      { id, text, control: true, stripLeft: false, stripRight: false }
    )),
    before: [1],
    after: [2],
  };
}

const BYTE_TEXTS = Array.from(
  { length: 256 },
  (_, value) => `<0x${value.toString(16).toUpperCase().padStart(2, "0")}>`,
);

/** A SentencePiece vocabulary: `pieces` from id 259 on, with their scores. */
function sentencePieceSpec(
  pieces: readonly (readonly [text: string, score: number])[],
  spacePrefix: boolean,
  withBytes = true,
): TokenizerSpec {
  const tokens = ["<unk>", "<s>", "</s>", ...BYTE_TEXTS, ...pieces.map(([text]) => text)];
  const types = Uint8Array.from(
    tokens,
    (_, id) => id < 1 ? unknown : id < 3 ? control : id < 259 ? byte : normal,
  );
  return {
    tokens: PackedStrings.from(tokens),
    types,
    spelling: "spaces",
    scores: Float32Array.from(tokens, (_, id) => pieces[id - 259]?.[1] ?? 0),
    merges: PackedStrings.from([]),
    model: {
      type: "sentencePiece",
      spacePrefix,
      unknown: 0,
      bytes: withBytes ? BYTE_TEXTS.map((_, value) => value + 3) : [],
    },
    normalizer: null,
    preTokenizer: null,
    cutAtWords: false,
    added: [0, 1, 2].map((id) => (
      { id, text: tokens[id] ?? "", control: true, stripLeft: false, stripRight: false }
    )),
    before: [1],
    after: [],
  };
}

const tiny = await createTokenizer(byteLevelSpec("smollm"));

/** The texts of the tokens, a bar between them. */
const words = (tokenizer: typeof tiny, text: string) =>
  [...tokenizer.encode(text)].map((token) => tokenizer.tokenText(token)).join("|");

Deno.test("Tokenizer merges byte-level words", () => {
  assertEquals(words(tiny, "the rest of the ring"), "t|he| re|st| of| the| |r|ing");
});

Deno.test("Tokenizer parses control tokens only where asked", () => {
  const text = "<|im_start|>the<|im_end|>";
  assertEquals([...tiny.encode(text, { parseSpecial: true })].filter((id) => id < 3), [1, 2]);
  assertEquals([...tiny.encode(text)].filter((id) => id < 3), []);
  assertEquals(tiny.decode(tiny.encode(text)), text);
});

Deno.test("Tokenizer adds what goes around a text only where asked", () => {
  assertEquals([...tiny.encode("", { addSpecial: true })], [1, 2]);
  const ids = tiny.encode("the");
  assertEquals([...tiny.encode("the", { addSpecial: true })], [1, ...ids, 2]);
});

Deno.test("Tokenizer gives every text back, for every way to cut words", async () => {
  const unit = fc.oneof(
    fc.constantFrom("\u0085", "\u00a0", "\0", "\ufeff", "\r\n", "'s", "é", "e\u0301", "1", "१"),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom(..."the <|im_end|>\n\t!"),
  );
  const text = fc.array(unit).map((units) => units.join(""));
  for (const kind of Object.keys(SPLIT_KINDS)) {
    const tokenizer = await createTokenizer(byteLevelSpec(kind));
    fc.assert(
      fc.property(text, (value) => {
        const ids = tokenizer.encode(value);
        assertEquals(tokenizer.decode(ids), value);
        assertEquals(ids.some((id) => tokenizer.isControl(id)), false);
        const special = tokenizer.encode(value, { parseSpecial: true });
        assertEquals(tokenizer.decode(special, { special: true }), value);
      }),
      { numRuns: 200 },
    );
  }
});

Deno.test("Tokenizer reads lone surrogates as U+FFFD", () => {
  assertEquals(tiny.decode(tiny.encode("a\ud800b\udc00")), "a\ufffdb\ufffd");
});

Deno.test("Tokenizer cuts words as each kind of model does", async () => {
  const text = "I'LL say 1234 é!?\n\n  x";
  const cut = async (kind: string) => {
    const spec = byteLevelSpec(kind);
    const tokenizer = await createTokenizer({ ...spec, ...wholeWords(spec, text) });
    return words(tokenizer, text);
  };
  assertEquals(await cut("gpt-2"), "I|'|LL| say| 1234| é|!?|\n\n | x");
  assertEquals(await cut("smollm"), "I|'|LL| say| |1|2|3|4| é|!?|\n\n | x");
  assertEquals(await cut("llama-bpe"), "I|'LL| say| |123|4| é|!?\n\n| | x");
  assertEquals(await cut("qwen2"), "I|'LL| say| |1|2|3|4| é|!?\n\n| | x");
  assertEquals(await cut("default"), "I|'|LL| say| |123|4| é|!?|\n\n | x");
});

/** A vocabulary in which every stretch of the text is a token, so that each word is one. */
function wholeWords(spec: TokenizerSpec, text: string): Partial<TokenizerSpec> {
  const character = (value: number) => spec.tokens.at(3 + value) ?? "";
  const spelled = Array.from(new TextEncoder().encode(text), character);
  const stretches = new Set<string>();
  for (let start = 0; start < spelled.length; start++) {
    for (let end = start + 2; end <= spelled.length; end++) {
      stretches.add(spelled.slice(start, end).join(""));
    }
  }
  const tokens = [...[...spec.tokens].slice(0, 259), ...stretches];
  return {
    tokens: PackedStrings.from(tokens),
    types: Uint8Array.from(tokens, (_, id) => id < 3 ? control : normal),
    merges: PackedStrings.from([]),
    model: { ...spec.model, ignoreMerges: true } as TokenizerSpec["model"],
  };
}

Deno.test("Tokenizer cuts long texts without changing their tokens", async () => {
  const sentence =
    "The rest, of the (ring) is on it.\n\n\tIs 12 in 漢字、かな?  No: it's <|im_end|> é \r\n";
  const long = sentence.repeat(400);
  for (const kind of Object.keys(SPLIT_KINDS)) {
    const spec = byteLevelSpec(kind);
    const [cutting, whole] = await Promise.all([
      createTokenizer(spec),
      createTokenizer({ ...spec, cutAtWords: false }),
    ]);
    assertEquals(cutting.encode(long), whole.encode(long));
  }
});

Deno.test("Tokenizer takes long unbroken runs whole", () => {
  for (const unit of ["a", "_", " ", "\n", "1", "\u00a0", "😀", "漢", "'", "\u0301"]) {
    const text = unit.repeat(100_000);
    assertEquals(tiny.decode(tiny.encode(text)) === text, true);
  }
});

Deno.test("Tokenizer takes a word of a megabyte, in pieces", () => {
  const text = "é".repeat(1 << 19);
  assertEquals(tiny.decode(tiny.encode(text)) === text, true);
});

Deno.test("Tokenizer merges SentencePiece tokens by score, leftmost first on a tie", async () => {
  const pieces = [["a", -9], ["b", -9], ["▁", -9], ["ab", -2], ["ba", -1], ["▁a", -3], [
    "aba",
    -4,
  ]] as const;
  const tokenizer = await createTokenizer(sentencePieceSpec(pieces, false));
  assertEquals(words(tokenizer, "aba"), "aba");
  assertEquals(words(tokenizer, "abab"), "aba|b");
  assertEquals(words(tokenizer, "aab"), "a|ab");
  assertEquals(words(tokenizer, "ab ab"), "ab| |ab");
  const tie = await createTokenizer(sentencePieceSpec([["a", 0], ["aa", -1]], false));
  assertEquals(words(tie, "aaa"), "aa|a");
});

Deno.test("Tokenizer puts a space before a SentencePiece text and after added tokens", async () => {
  const pieces = [["a", -9], ["▁", -9], ["▁a", -1]] as const;
  const tokenizer = await createTokenizer(sentencePieceSpec(pieces, true));
  assertEquals(words(tokenizer, "a"), " a");
  const ids = tokenizer.encode("a<s>a", { parseSpecial: true });
  assertEquals(tokenizer.decode(ids, { special: true }), " a<s> a");
  assertEquals([...tokenizer.encode("")], []);
});

Deno.test("Tokenizer spells what SentencePiece does not know in bytes, or as unknown", async () => {
  const spelling = await createTokenizer(sentencePieceSpec([["a", 0]], false));
  assertEquals([...spelling.encode("a€")], [259, 3 + 0xe2, 3 + 0x82, 3 + 0xac]);
  assertEquals(spelling.decode(spelling.encode("a€")), "a€");
  const without = await createTokenizer(sentencePieceSpec([["a", 0]], false, false));
  assertEquals([...without.encode("a€")], [259, 0]);
});

Deno.test("Tokenizer never merges SentencePiece text to a control or byte token", async () => {
  const parts = [..."<s>/0xA"].map((character) => [character, -9] as const);
  const pieces = [...parts, ["<s", -1], ["</s", -1], ["<0xA", -1], ["</", -1], ["0x", -1]] as const;
  const tokenizer = await createTokenizer(sentencePieceSpec(pieces, false));
  for (const text of ["<s>", "</s>", "<0xA>", "<unk>"]) {
    const ids = tokenizer.encode(text);
    assertEquals(tokenizer.decode(ids), text);
    assertEquals(ids.some((id) => id < 3), false);
  }
  assertEquals([...tokenizer.encode("<s>", { parseSpecial: true })], [1]);
});

Deno.test("Tokenizer takes long SentencePiece texts", async () => {
  const pieces = [["a", -9], ["▁", -9], ["aa", -2], ["aaaa", -1], ["▁▁", -3]] as const;
  const tokenizer = await createTokenizer(sentencePieceSpec(pieces, false));
  for (const unit of ["a", " ", "€", "aa a"]) {
    const text = unit.repeat(100_000);
    assertEquals(tokenizer.decode(tokenizer.encode(text)) === text, true);
  }
});

Deno.test("Tokenizer finds user-defined tokens in any text, the longest first", async () => {
  const spec = byteLevelSpec("smollm");
  const tokens = [...spec.tokens, "<b>", "<b><b>"];
  const added = ["<b>", "<b><b>"].map((text, index) => (
    { id: spec.tokens.length + index, text, control: false, stripLeft: true, stripRight: false }
  ));
  const tokenizer = await createTokenizer({
    ...spec,
    tokens: PackedStrings.from(tokens),
    types: Uint8Array.of(...spec.types, userDefined, userDefined),
    added: [...spec.added, ...added],
  });
  assertEquals([...tokenizer.encode("<b><b>  <b>")], [spec.tokens.length + 1, spec.tokens.length]);
});

Deno.test("createTokenizer refuses a specification that cannot work", async () => {
  const spec = byteLevelSpec("smollm");
  const preTokenizer = {
    type: "Split",
    pattern: { Regex: "(" },
    behavior: "Isolated",
    invert: false,
  };
  await assertRejects(() => createTokenizer({ ...spec, preTokenizer }), ModelError, "tokenizer");
});
