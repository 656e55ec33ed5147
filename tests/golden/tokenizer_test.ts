/** Token ids of the real model against those of native llama.cpp, on texts that went wrong before. */
import { assertEquals } from "@std/assert";
import { FileSource } from "../../core/host/store/file_source.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { tokenizerFromGguf } from "../../core/model/tokenizer_gguf.ts";
import { createTokenizer } from "../../wasm/tokenizer.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import reference from "../data/tokenize.json" with { type: "json" };

async function realTokenizer() {
  const source = await FileSource.open(REAL_MODEL ?? "");
  const { metadata } = await openModel([source]);
  const tokenizer = await createTokenizer(tokenizerFromGguf(metadata));
  await source.close();
  return tokenizer;
}

Deno.test({
  name: "Tokenizer gives the ids of llama.cpp, control tokens parsed and not, and the text back",
  ignore: REAL_MODEL === undefined,
  async fn() {
    const tokenizer = await realTokenizer();
    assertEquals(reference.length, 30);
    for (const { text, plain, special } of reference) {
      assertEquals([...tokenizer.encode(text)], plain, text);
      assertEquals([...tokenizer.encode(text, { parseSpecial: true })], special, text);
      assertEquals(tokenizer.decode(plain), text);
      assertEquals(tokenizer.decode(special, { special: true }), text);
    }
  },
});
