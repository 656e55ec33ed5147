import { assertEquals, assertThrows } from "@std/assert";
import { PackedStrings } from "./packed_strings.ts";
import { TokenTable } from "./tokenizer_table.ts";
import { TOKEN_TYPES } from "./tokenizer_spec.ts";

const { normal, unknown, control, userDefined, unused, byte } = TOKEN_TYPES;

const spaces = new TokenTable({
  tokens: PackedStrings.from(
    ["<unk>", "<s>", "<0xE2>", "<0x82>", "<0xAC>", "▁the", "▁▁x", "[PAD]", "▁user"],
  ),
  types: Uint8Array.of(unknown, control, byte, byte, byte, normal, normal, unused, userDefined),
  spelling: "spaces",
});

const bytes = new TokenTable({
  tokens: PackedStrings.from(["<|end|>", "Ġthe", "Ċ", "â", "Ĥ¬", "ï»¿", "Ġtool"]),
  types: Uint8Array.of(control, normal, normal, normal, normal, normal, userDefined),
  spelling: "bytes",
});

Deno.test("TokenTable decodes SentencePiece's spaces and byte tokens", () => {
  assertEquals(spaces.decode([5, 2, 3, 4, 6], false), " the€  x");
});

Deno.test("TokenTable decodes byte-level tokens", () => {
  assertEquals(bytes.decode([1, 2, 3, 4], false), " the\n€");
});

Deno.test("TokenTable takes tokens that the model's makers added as they stand", () => {
  assertEquals([spaces.decode([8], false), bytes.decode([6], false)], ["▁user", "Ġtool"]);
});

Deno.test("TokenTable shows control, unknown and unused tokens only where asked", () => {
  assertEquals(spaces.decode([1, 5, 7, 0], false), " the");
  assertEquals(spaces.decode([1, 5, 7, 0], true), "<s> the[PAD]<unk>");
});

Deno.test("TokenTable gives broken characters as U+FFFD and a byte order mark as it is", () => {
  assertEquals(bytes.decode([3, 1], false), "\ufffd the");
  assertEquals(bytes.decode([5, 5], false), "\ufeff\ufeff");
  assertEquals(bytes.decode([], false), "");
});

Deno.test("TokenTable gives a token's text, or the name of one that has none", () => {
  assertEquals([bytes.text(0), bytes.text(1), bytes.text(3)], ["<|end|>", " the", "\ufffd"]);
  assertEquals([spaces.text(0), spaces.text(2), spaces.text(6)], ["<unk>", "\ufffd", "  x"]);
});

Deno.test("TokenTable knows control tokens", () => {
  assertEquals([0, 1, 2].map((token) => spaces.isControl(token)), [false, true, false]);
});

Deno.test("TokenTable refuses ids outside the vocabulary", () => {
  for (const token of [-1, 9, 0.5, NaN]) {
    assertThrows(() => spaces.bytes(token), RangeError, "must be an integer from 0 to 8");
    assertThrows(() => spaces.isControl(token), RangeError);
    assertThrows(() => spaces.decode([token], true), RangeError);
  }
});
