import { assertEquals } from "@std/assert";
import { isCutAtWords, SPLIT_KINDS, splitAndMapBytes } from "./tokenizer_splits.ts";

const split = (expression: string, behavior = "Isolated") => (
  { type: "Split", pattern: { Regex: expression }, behavior, invert: false }
);
const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: false };

Deno.test("isCutAtWords is true of every kind that model files name", () => {
  for (const kind of Object.values(SPLIT_KINDS)) {
    assertEquals(isCutAtWords(splitAndMapBytes(kind)), true);
  }
});

Deno.test("isCutAtWords knows Llama 3's and GPT-2's tokenizer.json", () => {
  const llama3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" +
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  assertEquals(
    isCutAtWords({ type: "Sequence", pretokenizers: [split(llama3), byteLevel] }),
    true,
  );
  assertEquals(isCutAtWords({ ...byteLevel, use_regex: true }), true);
});

Deno.test("isCutAtWords is false where cutting could change tokens", () => {
  const llama3 = SPLIT_KINDS["llama3"]?.expressions[0] ?? "";
  assertEquals(isCutAtWords(null), false);
  assertEquals(isCutAtWords(byteLevel), false);
  assertEquals(isCutAtWords({ ...byteLevel, use_regex: true, add_prefix_space: true }), false);
  assertEquals(isCutAtWords({ type: "Metaspace", prepend_scheme: "always" }), false);
  assertEquals(isCutAtWords(split("\\p{N}")), false);
  assertEquals(isCutAtWords(split(llama3, "Removed")), false);
});
