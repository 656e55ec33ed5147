import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { openModel } from "../../model/gguf/open_model.ts";
import { MemorySource } from "../../model/memory_source.ts";
import { tinyModel, type TinyModelOptions } from "../../../tests/support/tiny_model.ts";
import { modelFingerprint } from "./fingerprint.ts";

async function fingerprint(options: TinyModelOptions, name = "tiny.gguf"): Promise<string> {
  const { files } = await openModel([new MemorySource(name, tinyModel(options))]);
  return await modelFingerprint(files);
}

Deno.test("modelFingerprint is of the model, not of its file's name", async () => {
  const one = await fingerprint({ type: "Q4_1" });
  assertMatch(one, /^[0-9a-f]{64}$/);
  assertEquals(await fingerprint({ type: "Q4_1" }, "other.gguf"), one);
});

Deno.test("modelFingerprint tells weights, formats and shapes apart", async () => {
  const all = [
    await fingerprint({ type: "Q4_1" }),
    await fingerprint({ type: "Q4_1", seed: 2 }),
    await fingerprint({ type: "Q8_0" }),
    await fingerprint({ type: "Q4_1", layers: 3 }),
    await fingerprint({ type: "Q4_1", kvHeads: 4 }),
  ];
  for (const [i, one] of all.entries()) {
    for (const other of all.slice(i + 1)) assertNotEquals(one, other);
  }
});
