import { assertEquals } from "@std/assert";
import { bytesOfCharacters } from "./tokenizer_bytes.ts";

Deno.test("bytesOfCharacters reads printable characters as themselves and others by GPT-2's table", () => {
  assertEquals([...bytesOfCharacters("a~¡ÿ")], [0x61, 0x7e, 0xa1, 0xff]);
  // A newline, a space, the last control byte, the first and last above, and the soft hyphen.
  assertEquals([...bytesOfCharacters("ĊĠġĢłŃ")], [0x0a, 0x20, 0x7f, 0x80, 0xa0, 0xad]);
});

Deno.test("bytesOfCharacters spells every byte by one character of its alphabet", () => {
  const range = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i));
  const alphabet = [range(0x21, 0x7e), range(0xa1, 0xac), range(0xae, 0xff), range(0x100, 0x143)];
  const spelled = bytesOfCharacters(alphabet.flat().join(""));
  assertEquals([...spelled].sort((a, b) => a - b), Array.from({ length: 256 }, (_, byte) => byte));
});

Deno.test("bytesOfCharacters leaves a token with other characters as it is", () => {
  assertEquals(bytesOfCharacters("Ġ€"), new TextEncoder().encode("Ġ€"));
});
