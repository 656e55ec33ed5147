/** Prompts around the length of the context: never a 200 with an empty stream, always both counts. */
import { assertEquals } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, chatTexts, complete, COMPLETIONS, expectError, post, stream } from "./requests.ts";

const CONTEXT = 64;
/** Tokens of a chat with one empty message. */
const FRAME = "?user\n?\n?assistant\n".length;

const app = entropic(fakeModel({ contextLength: CONTEXT }));
const messages = (tokens: number) => [{ role: "user", content: "x".repeat(tokens - FRAME) }];
const ids = (tokens: number) => Array.from({ length: tokens }, () => 97);

Deno.test("a prompt of context - 1 gets its one token", async () => {
  assertEquals(chatTexts(await stream(app, CHAT, { messages: messages(CONTEXT - 1) })), ["H"]);
  const { choices } = await complete(app, { prompt: ids(CONTEXT - 1) });
  assertEquals([choices[0].text, choices[0].finish_reason], ["H", "length"]);
});

Deno.test("a prompt of context and context + 1 is refused with both counts", async () => {
  for (const tokens of [CONTEXT, CONTEXT + 1, 10 * CONTEXT]) {
    for (const stream of [false, true]) {
      const expected = {
        status: 400,
        code: "context_length_exceeded",
        says: [`${tokens} prompt tokens`, `${CONTEXT} tokens`],
      };
      const chat = await post(app, CHAT, { messages: messages(tokens), stream });
      await expectError(app, chat, expected);
      const completion = await post(app, COMPLETIONS, { prompt: ids(tokens), stream });
      await expectError(app, completion, expected);
    }
  }
});

Deno.test("max_tokens beyond the rest of the context is refused, exactly the rest is not", async () => {
  const rest = CONTEXT - FRAME;
  const body = { messages: messages(FRAME) };
  assertEquals((await post(app, CHAT, { ...body, max_tokens: rest })).status, 200);
  for (const max_tokens of [rest + 1, 1e9, Number.MAX_SAFE_INTEGER]) {
    await expectError(app, await post(app, CHAT, { ...body, max_tokens }), {
      status: 400,
      param: "max_tokens",
      code: "context_length_exceeded",
      says: [String(FRAME), String(max_tokens), String(CONTEXT)],
    });
  }
});

Deno.test("a prompt as long as the context may be scored with max_tokens 0", async () => {
  const answer = await complete(app, { prompt: ids(CONTEXT), max_tokens: 0, echo: true });
  assertEquals(answer.choices[0].text, "a".repeat(CONTEXT));
});
