/** Every bad value: 400 in OpenAI's shape, naming field, value and what is allowed, whole or streamed. */
import { assertEquals } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import { VOCABULARY } from "../support/byte_tokenizer.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, COMPLETIONS, expectError, MESSAGES, post } from "./requests.ts";

/** JSON of the field's value, the `param` of the error, and parts of its message. */
type Case = readonly [field: string, json: string, param?: string, ...says: string[]];

const SHARED: readonly Case[] = [
  ["temperature", "-1", "temperature", "-1", "at least 0"],
  ["temperature", "1e999", "temperature", "Infinity"],
  ["temperature", "-0.001"],
  ["temperature", '"hot"', "temperature", '"hot"'],
  ["temperature", "true"],
  ["top_p", "0", "top_p", "above 0 and at most 1"],
  ["top_p", "1.1"],
  ["top_p", "-1"],
  ["top_k", "-2", "top_k", "-1 and 0 keep all"],
  ["top_k", "1.5"],
  ["min_p", "-0.1"],
  ["min_p", "1.1", "min_p", "from 0 to 1"],
  ["n", "0"],
  ["n", "-1"],
  ["n", "1.5"],
  ["n", "17", "n", "17", "from 1 to 16"],
  ["n", "1000000000"],
  ["seed", "1.5", "seed", "1.5", "integer from -2^63 to 2^64 - 1"],
  ["seed", "18446744073709551616", "seed", "integer"],
  ["seed", "-9223372036854777856"],
  ["seed", '"7"'],
  ["stop", '""', "stop", "non-empty"],
  ["stop", '["a",""]'],
  ["stop", JSON.stringify(Array.from({ length: 17 }, () => "a")), "stop", "up to 16"],
  ["stop", "5"],
  ["stop", JSON.stringify("x".repeat(1001))],
  ["max_tokens", "-1", "max_tokens", "-1", "at least 0"],
  ["max_tokens", "1.5"],
  ["max_tokens", '"1"'],
  ["max_tokens", "1e999"],
  ["min_tokens", "-1"],
  ["presence_penalty", "2.1", "presence_penalty", "from -2 to 2"],
  ["presence_penalty", "-2.1"],
  ["frequency_penalty", "2.1", "frequency_penalty", "from -2 to 2"],
  ["frequency_penalty", "-1e999"],
  ["repetition_penalty", "0"],
  ["repetition_penalty", "-1"],
  ["logit_bias", '{"65":101}', "logit_bias.65", "101", "from -100 to 100"],
  ["logit_bias", '{"65":-1e999}', "logit_bias.65"],
  ["logit_bias", `{"${VOCABULARY}":1}`, "logit_bias", String(VOCABULARY - 1)],
  ["logit_bias", '{"-1":1}'],
  ["logit_bias", '{"65":null}', "logit_bias.65", "null", "from -100 to 100"],
  ["logit_bias", '{"65":"5"}', "logit_bias.65", '"5"'],
  ["logit_bias", '{"word":1}'],
  ["logit_bias", "[1]"],
  ["stop_token_ids", `[${VOCABULARY}]`, "stop_token_ids[0]", String(VOCABULARY - 1)],
  ["stop_token_ids", "[-1]"],
  ["stop_token_ids", "5"],
  ["ignore_eos", "1", "ignore_eos", "true or false"],
  ["stream_options", "1"],
  ["priority", "0.5"],
  ["user", "5"],
  ["model", "5"],
  ["response_format", '{"type":"json_object"}', "response_format", "not supported", "text"],
  ["grammar", '"root ::= x"', "grammar", "not supported"],
  ["guided_json", '{"type":"object"}', "guided_json", "not supported"],
];

const IN_CHAT: readonly Case[] = [
  ["messages", "[]", "messages", "empty array", "non-empty array"],
  ["messages", "null", "messages"],
  ["messages", '"Hi"', "messages"],
  ["messages", '["Hi"]', "messages[0]"],
  ["messages", '[{"role":"user"}]', "messages[0].content", "missing"],
  ["messages", '[{"content":"Hi"}]', "messages[0].role", "missing"],
  ["messages", '[{"role":"wizard","content":"Hi"}]', "messages[0].role", '"wizard"', "assistant"],
  ["messages", '[{"role":"user","content":5}]', "messages[0].content"],
  ["messages", '[{"role":"user","content":[]}]', "messages[0].content"],
  ["messages", '[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]'],
  ["messages", '[{"role":"assistant","content":"","tool_calls":[{}]}]', "messages[0].tool_calls"],
  ["max_completion_tokens", "-1", "max_completion_tokens"],
  ["logprobs", "1", "logprobs", "true or false"],
  ["top_logprobs", "21", "top_logprobs", "21", "from 0 to 20"],
  ["top_logprobs", "-1"],
  ["top_logprobs", "1", "top_logprobs", "unless logprobs is true"],
  ["tools", '[{"type":"function"}]', "tools", "not supported"],
  ["tool_choice", '"required"', "tool_choice", "not supported"],
  ["functions", '[{"name":"f"}]', "functions", "not supported"],
  ["modalities", '["text","audio"]', "modalities", "not supported"],
];

const IN_COMPLETIONS: readonly Case[] = [
  ["prompt", '""', "prompt", "non-empty"],
  ["prompt", "[]", "prompt"],
  ["prompt", "null", "prompt"],
  ["prompt", "5", "prompt"],
  ["prompt", '["a",""]', "prompt[1]"],
  ["prompt", "[[]]", "prompt[0]"],
  ["prompt", "[1.5]"],
  ["prompt", "[-1]"],
  ["prompt", `[${VOCABULARY}]`, "prompt[0]", String(VOCABULARY), String(VOCABULARY - 1)],
  ["prompt", `["a",[1,${VOCABULARY}]]`, "prompt[1][1]"],
  ["prompt", '["a",1]'],
  ["prompt", JSON.stringify(Array.from({ length: 17 }, () => "a")), "prompt", "17", "16 choices"],
  ["logprobs", "21", "logprobs", "from 0 to 20"],
  ["logprobs", "true"],
  ["best_of", "2", "best_of", "the value of n"],
  ["best_of", "0"],
  ["suffix", '"end"', "suffix", "not supported"],
  ["echo", '"yes"'],
];

const ENDPOINTS = [
  { path: CHAT, cases: [...SHARED, ...IN_CHAT], base: { messages: MESSAGES } },
  { path: COMPLETIONS, cases: [...SHARED, ...IN_COMPLETIONS], base: { prompt: "Hi" } },
];

for (const { path, cases, base } of ENDPOINTS) {
  Deno.test(`${path} refuses every bad value, and the next normal request succeeds`, async (t) => {
    for (const [field, json, param, ...says] of cases) {
      await t.step(`${field} ${json.slice(0, 40)}`, async () => {
        for (const stream of [false, true]) {
          const model = fakeModel();
          const app = entropic(model);
          const text = JSON.stringify({ ...base, stream, [field]: "@" }).replace('"@"', json);
          await expectError(app, await post(app, path, text), {
            status: 400,
            ...(param !== undefined && { param }),
            says,
          });
          assertEquals(model.engine.requests.length, 1, "only the normal request was taken");
        }
      });
    }
  });
}

Deno.test("a request without its prompt is told that it is missing", async () => {
  const app = entropic(fakeModel());
  const code = "missing_value";
  const chat = await post(app, CHAT, {});
  await expectError(app, chat, { status: 400, param: "messages", code, says: ["it is missing"] });
  const completion = await post(app, COMPLETIONS, { max_tokens: 1 });
  await expectError(app, completion, { status: 400, param: "prompt", code });
});

Deno.test("stream_options are refused without stream", async () => {
  const app = entropic(fakeModel());
  const body = { messages: MESSAGES, stream_options: { include_usage: true } };
  await expectError(app, await post(app, CHAT, body), { status: 400, param: "stream_options" });
});

Deno.test("min_tokens above max_tokens is refused", async () => {
  const app = entropic(fakeModel());
  const body = { messages: MESSAGES, min_tokens: 3, max_tokens: 2 };
  const says = ["3", "here 2"];
  await expectError(app, await post(app, CHAT, body), { status: 400, param: "min_tokens", says });
});

Deno.test("temperatures from 0 to the largest double are passed on", async () => {
  for (const temperature of [0, 1e-40, 1e-5, 2, 1e300]) {
    const model = fakeModel();
    const response = await post(entropic(model), CHAT, { messages: MESSAGES, temperature });
    assertEquals(response.status, 200);
    assertEquals(model.engine.requests[0]?.sampling.temperature, temperature);
  }
});

Deno.test("a value that a message repeats is cut short", async () => {
  const app = entropic(fakeModel());
  const response = await post(app, CHAT, { messages: MESSAGES, temperature: "x".repeat(10_000) });
  const { error } = await expectError(app, response, { status: 400 });
  assertEquals(error.message.length < 200, true);
});

Deno.test("an unknown model is 404", async () => {
  const app = entropic(fakeModel());
  const body = { messages: MESSAGES, model: "gpt-4" };
  await expectError(app, await post(app, CHAT, body), {
    status: 404,
    param: "model",
    code: "model_not_found",
    says: ['"gpt-4"', "fake"],
  });
});
