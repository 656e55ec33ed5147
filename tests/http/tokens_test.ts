import { assertEquals } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import { BOS, VOCABULARY } from "../support/byte_tokenizer.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { expectError, type Json, MESSAGES, post, postJson } from "./requests.ts";

const app = entropic(fakeModel());
const tokenize = async (body: Json): Promise<number[]> =>
  (await postJson(app, "/tokenize", body)).tokens;

Deno.test("/tokenize answers ids, their count and the context's length", async () => {
  const answer = await postJson(app, "/tokenize", { prompt: "é" });
  assertEquals(answer, { tokens: [BOS, 0xc3, 0xa9], count: 3, max_model_len: 512 });
  assertEquals(await tokenize({ prompt: "" }), [BOS]);
});

Deno.test("/tokenize reads vLLM's fields with vLLM's defaults", async () => {
  assertEquals(await tokenize({ prompt: "a" }), [BOS, 97]);
  assertEquals(await tokenize({ prompt: "a", add_special_tokens: false }), [97]);
  assertEquals((await tokenize({ prompt: "<|end|>", add_special_tokens: false })).length, 7);
});

Deno.test("/tokenize reads llama.cpp's fields with llama.cpp's defaults", async () => {
  assertEquals(await tokenize({ content: "a" }), [97]);
  assertEquals(await tokenize({ content: "a", add_special: true }), [BOS, 97]);
  assertEquals(await tokenize({ content: "<|end|>" }), [259]);
  assertEquals((await tokenize({ content: "<|end|>", parse_special: false })).length, 7);
});

Deno.test("/tokenize renders messages as chat does", async () => {
  const opened = await tokenize({ messages: MESSAGES });
  const closed = await tokenize({ messages: MESSAGES, add_generation_prompt: false });
  assertEquals(opened.slice(0, closed.length), closed);
  assertEquals(opened.length - closed.length, 1 + "assistant\n".length);
});

Deno.test("/tokenize wants exactly one text", async () => {
  for (const body of [{}, { prompt: null }, { prompt: "a", content: "a" }]) {
    const says = ["exactly one of prompt, content and messages"];
    await expectError(app, await post(app, "/tokenize", body), { status: 400, says });
  }
});

Deno.test("/detokenize answers the text under both names, control tokens included", async () => {
  const answer = await postJson(app, "/detokenize", { tokens: [257, 104, 105, 258] });
  assertEquals(answer.prompt, "<|im_start|>hi<|im_end|>");
  assertEquals(answer.content, answer.prompt);
  assertEquals((await postJson(app, "/detokenize", { tokens: [] })).prompt, "");
});

Deno.test("/detokenize refuses what is no token", async () => {
  const cases: readonly [tokens: Json, param: string][] = [
    [[VOCABULARY], "tokens[0]"],
    [[1, -1], "tokens[1]"],
    [[1.5], "tokens[0]"],
    ["a", "tokens"],
    [undefined, "tokens"],
  ];
  for (const [tokens, param] of cases) {
    await expectError(app, await post(app, "/detokenize", { tokens }), { status: 400, param });
  }
});

Deno.test("/v1/models lists the model and describes it by name", async () => {
  const described = {
    id: "fake",
    object: "model",
    created: 1_700_000_000,
    owned_by: "entropic-time",
    max_model_len: 512,
  };
  const list = await (await app.request("/v1/models")).json();
  assertEquals(list, { object: "list", data: [described] });
  assertEquals(await (await app.request("/v1/models/fake")).json(), described);
  const unknown = await app.request("/v1/models/gpt-4");
  await expectError(app, unknown, { status: 404, code: "model_not_found" });
});
