import { assertEquals, assertMatch } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import { BOS } from "../support/byte_tokenizer.ts";
import { fakeModel, say, sayTheSeed } from "../support/fake_engine.ts";
import { complete, COMPLETIONS, type Json, stream } from "./requests.ts";

const texts = (answer: Json): string[] => answer.choices.map(({ text }: Json) => text);

Deno.test("completions answer in OpenAI's shape", async () => {
  const model = fakeModel();
  const answer = await complete(entropic(model));
  assertMatch(answer.id, /^cmpl-[0-9a-f]{32}$/);
  assertEquals(answer.object, "text_completion");
  assertEquals(answer.choices, [
    { index: 0, text: "Hello, world", logprobs: null, finish_reason: "stop" },
  ]);
  assertEquals(answer.usage.prompt_tokens, 3);
  assertEquals([...model.engine.requests[0]!.prompt as Uint32Array], [BOS, 72, 105]);
});

Deno.test("completions generate 16 tokens unless told otherwise, fewer where the context ends", async () => {
  const play = () => say("0123456789abcdefghij");
  assertEquals(texts(await complete(entropic(fakeModel({ play })))), ["0123456789abcdef"]);
  const small = entropic(fakeModel({ play, contextLength: 10 }));
  assertEquals(texts(await complete(small)), ["0123456"]);
});

Deno.test("completions generate exactly max_tokens of 0, 1 and 2", async () => {
  const app = entropic(fakeModel());
  for (const [count, text] of ["", "H", "He"].entries()) {
    const answer = await complete(app, { max_tokens: count });
    assertEquals(texts(answer), [text]);
    assertEquals(answer.choices[0].finish_reason, "length");
    const chunks = await stream(app, COMPLETIONS, { prompt: "Hi", max_tokens: count });
    assertEquals(chunks.map(({ choices }) => choices[0].text).join(""), text);
  }
});

Deno.test("completions take a text, token ids, and arrays of either", async () => {
  const cases: readonly [prompt: Json, prompts: number[][]][] = [
    ["a", [[BOS, 97]]],
    [[97, 98], [[97, 98]]],
    [["a", "b"], [[BOS, 97], [BOS, 98]]],
    [[[97], [98, 99]], [[97], [98, 99]]],
    [["a", [98]], [[BOS, 97], [98]]],
  ];
  for (const [prompt, prompts] of cases) {
    const model = fakeModel();
    const answer = await complete(entropic(model), { prompt });
    assertEquals(model.engine.requests.map((request) => Array.from(request.prompt)), prompts);
    assertEquals(answer.choices.map(({ index }: Json) => index), [...prompts.keys()]);
  }
});

Deno.test("completions read control tokens in a text as text", async () => {
  const model = fakeModel();
  await complete(entropic(model), { prompt: "<|im_end|>" });
  assertEquals(Array.from(model.engine.requests[0]!.prompt).filter((token) => token >= 256), [BOS]);
});

Deno.test("completions number the choices of several prompts one prompt after the other", async () => {
  const app = entropic(fakeModel({ play: sayTheSeed }));
  const answer = await complete(app, { prompt: ["a", "bc"], n: 2, seed: 5, echo: true });
  assertEquals(texts(answer), ["aseed 5", "aseed 6", "bcseed 5", "bcseed 6"]);
  assertEquals(answer.usage.prompt_tokens, 2 + 3);
  assertEquals(answer.usage.completion_tokens, 4 * 6);
});

Deno.test("completions echo the prompt once, streamed or not", async () => {
  const app = entropic(fakeModel({ play: () => say("é!") }));
  for (const prompt of ["Hi ", [72, 105, 32]]) {
    assertEquals(texts(await complete(app, { prompt, echo: true })), ["Hi é!"]);
    assertEquals(texts(await complete(app, { prompt, echo: true, max_tokens: 0 })), ["Hi "]);
    const chunks = await stream(app, COMPLETIONS, { prompt, echo: true });
    assertEquals(chunks.map(({ choices }) => choices[0].text).join(""), "Hi é!");
  }
});

Deno.test("completions give log-probabilities with offsets, of the echoed prompt too", async () => {
  const app = entropic(fakeModel({ play: () => say("é!") }));
  const fields = { prompt: "aé", logprobs: 1, echo: true };
  const { choices } = await complete(app, fields);
  const expected = {
    tokens: ["<|bos|>", "a", "bytes:\\xc3", "bytes:\\xa9", "bytes:\\xc3", "bytes:\\xa9", "!"],
    token_logprobs: [null, -0.25, -0.25, -0.25, -0.25, -0.25, -0.25],
    top_logprobs: [
      null,
      { a: -0.25 },
      { "bytes:\\xc3": -0.25 },
      { "bytes:\\xa9": -0.25 },
      { "bytes:\\xc3": -0.25 },
      { "bytes:\\xa9": -0.25 },
      { "!": -0.25 },
    ],
    text_offset: [0, 0, 1, 2, 2, 3, 3],
  };
  assertEquals(choices[0].logprobs, expected);
  const chunks = await stream(app, COMPLETIONS, fields);
  const parts = chunks.map(({ choices }) => choices[0].logprobs);
  for (const key of Object.keys(expected) as (keyof typeof expected)[]) {
    assertEquals(parts.flatMap((part) => part[key]), expected[key] as Json[]);
  }
  const zero = await complete(app, { logprobs: 0 });
  assertEquals(zero.choices[0].logprobs.top_logprobs, [{}, {}, {}]);
  assertEquals(zero.choices[0].logprobs.token_logprobs, [-0.25, -0.25, -0.25]);
});

Deno.test("completions stream the usage as a last chunk without choices", async () => {
  const app = entropic(fakeModel());
  const fields = { prompt: ["a", "b"], stream_options: { include_usage: true } };
  const chunks = await stream(app, COMPLETIONS, fields);
  const last = chunks.pop();
  assertEquals(last.choices, []);
  assertEquals(last.usage.total_tokens, 4 + 24);
  assertEquals(chunks.map(({ choices }) => choices[0].finish_reason).filter(Boolean).length, 2);
});

Deno.test("completions take best_of when it is n, and an empty suffix", async () => {
  const app = entropic(fakeModel());
  assertEquals((await complete(app, { best_of: 1, suffix: "" })).choices.length, 1);
  assertEquals((await complete(app, { best_of: 2, n: 2, suffix: null })).choices.length, 2);
});
