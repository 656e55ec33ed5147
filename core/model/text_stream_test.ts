import { assertEquals, assertThrows } from "@std/assert";
import * as fc from "fast-check";
import { TextStream } from "./text_stream.ts";

/** Each token is the bytes at its index. */
function tokenizer(tokens: readonly Uint8Array[]) {
  return { tokenBytes: (token: number) => tokens[token] ?? new Uint8Array() };
}

function stream(tokens: readonly Uint8Array[], stops: readonly string[] = []) {
  const text = new TextStream(tokenizer(tokens), stops);
  const pieces = tokens.map((_, token) => text.push(token));
  pieces.push(text.finish());
  return { pieces, text: pieces.join(""), stop: text.stopString };
}

const utf8 = (text: string) => new TextEncoder().encode(text);

/** Cuts a text into tokens of one byte each. */
const bytewise = (text: string) => Array.from(utf8(text), (byte) => Uint8Array.of(byte));

function joined(tokens: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(tokens.flatMap((token) => [...token]));
}

Deno.test("TextStream gives characters whole", () => {
  const { pieces } = stream(bytewise("aé€😀"));
  assertEquals(pieces, ["a", "", "é", "", "", "€", "", "", "", "😀", ""]);
});

Deno.test("TextStream keeps a byte order mark and NUL", () => {
  assertEquals(stream(bytewise("\ufeff\0\ufeff")).text, "\ufeff\0\ufeff");
});

Deno.test("TextStream ends a truncated character with U+FFFD", () => {
  const { pieces } = stream([utf8("a"), Uint8Array.of(0xf0, 0x9f), Uint8Array.of(0x98)]);
  assertEquals(pieces, ["a", "", "", "\ufffd"]);
});

Deno.test("TextStream gives what decoding everything at once gives, for any bytes", () => {
  // Mostly bytes that make and break multi-byte characters.
  const byte = fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(0x80, 0xbf, 0xc3, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xf0, 0x9f, 0xef, 0xbb),
  );
  const token = fc.array(byte, { maxLength: 5 }).map((bytes) => Uint8Array.from(bytes));
  fc.assert(
    fc.property(fc.array(token), (tokens) => {
      const whole = new TextDecoder("utf-8", { ignoreBOM: true }).decode(joined(tokens));
      const { pieces, text } = stream(tokens);
      assertEquals(text, whole);
      assertEquals(pieces.every((piece) => piece.isWellFormed()), true);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("TextStream cuts before a stop string that spans tokens", () => {
  const { pieces, stop } = stream(["one ST", "O", "P two", " three"].map(utf8), ["STOP"]);
  assertEquals(pieces, ["one ", "", "", "", ""]);
  assertEquals(stop, "STOP");
});

Deno.test("TextStream gives out a beginning that does not go on as a stop string", () => {
  const { pieces, stop } = stream(["one ST", "A", "ST"].map(utf8), ["STOP"]);
  assertEquals(pieces, ["one ", "STA", "", "ST"]);
  assertEquals(stop, undefined);
});

Deno.test("TextStream finds a stop string that begins inside a failed one", () => {
  assertEquals(stream(bytewise("xaaab!"), ["aab"]).text, "xa");
  assertEquals(stream(bytewise("abab-"), ["abc", "ba"]).text, "a");
});

Deno.test("TextStream stops at the string that ends first, of these at the longest", () => {
  assertEquals(stream([utf8("xabcdx")], ["abcd", "bc"]), {
    pieces: ["xa", ""],
    text: "xa",
    stop: "bc",
  });
  assertEquals(stream([utf8("xabcdx")], ["cd", "abcd", "d"]).stop, "abcd");
});

Deno.test("TextStream gives nothing after a stop string", () => {
  const text = new TextStream(tokenizer([utf8("a#b"), utf8("c")]), ["#"]);
  assertEquals([text.push(0), text.push(1), text.finish()], ["a", "", ""]);
});

Deno.test("TextStream stops at a character that only the end of the tokens completes", () => {
  const { text, stop } = stream([utf8("a"), Uint8Array.of(0xe2, 0x82)], ["\ufffd"]);
  assertEquals([text, stop], ["a", "\ufffd"]);
});

Deno.test("TextStream refuses an empty stop string", () => {
  assertThrows(() => new TextStream(tokenizer([]), ["a", ""]), RangeError, "stop string");
});

/** The same by definition: the match that ends first, of these the longest. */
function cut(text: string, stops: readonly string[]): { text: string; stop: string | undefined } {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter((stop) => text.slice(0, end).endsWith(stop))
      .sort((a, b) => b.length - a.length)[0];
    if (found !== undefined) return { text: text.slice(0, end - found.length), stop: found };
  }
  return { text, stop: undefined };
}

Deno.test("TextStream cuts as the definition says and never gives a part of a stop string", () => {
  const word = fc.string({
    unit: fc.constantFrom("a", "b", "é", "😀"),
    minLength: 1,
    maxLength: 4,
  });
  const tokens = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), maxLength: 4 }));
  fc.assert(
    fc.property(tokens, fc.array(word, { maxLength: 5 }), (parts, stops) => {
      const expected = cut(parts.join(""), stops);
      const { text, stop } = stream(bytewise(parts.join("")), stops);
      assertEquals({ text, stop }, expected);
      const byPart = stream(parts.map(utf8), stops);
      assertEquals({ text: byPart.text, stop: byPart.stop }, expected);
      let given = "";
      for (const piece of byPart.pieces) {
        given += piece;
        assertEquals(expected.text.startsWith(given), true);
      }
    }),
    { numRuns: 2000 },
  );
});

Deno.test("TextStream follows a thousand stop strings through a long text", () => {
  const stops = Array.from({ length: 1000 }, (_, i) => `${"a".repeat(i + 1)}b`);
  const { text, stop } = stream([utf8("a".repeat(1_000_000)), utf8("c")], stops);
  assertEquals([text.length, stop], [1_000_001, undefined]);
});
