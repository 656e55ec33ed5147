import { assertEquals } from "@std/assert";
import { readEndTokens } from "./end_tokens.ts";
import { GgufMetadata } from "./gguf/metadata.ts";
import type { GgufValue } from "./gguf/values.ts";
import { PackedStrings } from "./packed_strings.ts";

function endTokens(tokens: string[], types: number[], ids: Record<string, number> = {}): number[] {
  const values: [string, GgufValue][] = [
    ["tokenizer.ggml.tokens", {
      type: "array",
      elementType: "string",
      elements: PackedStrings.from(tokens),
    }],
    ["tokenizer.ggml.token_type", {
      type: "array",
      elementType: "int32",
      elements: Int32Array.from(types),
    }],
  ];
  for (const [key, value] of Object.entries(ids)) {
    values.push([`tokenizer.ggml.${key}`, { type: "uint32", value }]);
  }
  return readEndTokens(new GgufMetadata("m.gguf", new Map(values)));
}

Deno.test("readEndTokens joins the ids of the metadata with the texts of control tokens", () => {
  const tokens = ["a", "<|im_end|>", "<|im_start|>", "</s>", "<|eot_id|>", "b"];
  const ids = { eos_token_id: 3, eot_token_id: 1, bos_token_id: 2 };
  assertEquals(endTokens(tokens, [1, 3, 3, 3, 3, 1], ids), [1, 3, 4]);
});

Deno.test("readEndTokens takes a text for an end only where its token is a control token", () => {
  assertEquals(endTokens(["<|im_end|>", "<|endoftext|>"], [1, 4]), []);
});

Deno.test("readEndTokens finds nothing in a file without a vocabulary", () => {
  assertEquals(readEndTokens(new GgufMetadata("m.gguf", new Map())), []);
});
