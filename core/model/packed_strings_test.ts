import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { PackedStrings } from "./packed_strings.ts";

const WORDS = fc.array(fc.string({ unit: "binary", maxLength: 6 }), { maxLength: 12 });

Deno.test("PackedStrings gives back the strings that it was made of", () => {
  fc.assert(fc.property(WORDS, (words) => {
    const packed = PackedStrings.from(words);
    assertEquals([...packed], words);
    assertEquals(words.map((_, index) => packed.at(index)), words);
    assertEquals(packed.length, words.length);
  }));
});

Deno.test("PackedStrings lays the UTF-8 of strings end to end", () => {
  const { bytes, ends } = PackedStrings.from(["a", "", "é😀", "\uFEFFb"]);
  assertEquals(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), "aé😀\uFEFFb");
  assertEquals([...ends], [1, 1, 7, 11]);
});

Deno.test("PackedStrings finds a string where it is first", () => {
  fc.assert(fc.property(WORDS, fc.string({ unit: "binary", maxLength: 2 }), (words, other) => {
    const packed = PackedStrings.from(words);
    for (const word of [...words, other]) assertEquals(packed.indexOf(word), words.indexOf(word));
  }));
});

Deno.test("PackedStrings has nothing outside its bounds", () => {
  const packed = PackedStrings.from(["a", "b"]);
  for (const index of [-1, 2, 0.5, NaN]) {
    assertEquals(packed.at(index), undefined);
    assertEquals(packed.bytesOf(index), 0);
  }
});

Deno.test("PackedStrings empties what is not kept", () => {
  fc.assert(fc.property(WORDS, fc.array(fc.boolean(), { maxLength: 12 }), (words, keep) => {
    const kept = PackedStrings.from(words).keepIf((index) => keep[index] ?? false);
    assertEquals([...kept], words.map((word, index) => keep[index] ? word : ""));
  }));
});
