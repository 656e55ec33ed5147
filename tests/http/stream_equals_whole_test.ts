import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { entropic } from "../../core/server/app.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, chat, chatTexts, complete, COMPLETIONS, MESSAGES, stream } from "./requests.ts";

/** Any tokens, control and end tokens among them; bytes that are no UTF-8 as well. */
const tokens = fc.array(
  fc.oneof(
    fc.constantFrom(..."ab", "é", "€", "😀", "\n", "data: ").map((text) => [
      ...new TextEncoder().encode(text),
    ]),
    fc.nat(259).map((token) => [token]),
  ),
  { maxLength: 20 },
).map((pieces) => pieces.flat());

const request = fc.record({
  n: fc.integer({ min: 1, max: 3 }),
  max_tokens: fc.nat(30),
  seed: fc.nat(),
  logprobs: fc.boolean(),
  stop: fc.array(fc.string({ unit: fc.constantFrom(..."ab€"), minLength: 1, maxLength: 3 }), {
    maxLength: 2,
  }),
});

/** Cuts a different part of the script for each choice, and takes turns in different orders. */
function app(script: readonly number[]) {
  return entropic(fakeModel({
    play: ({ sampling }) => ({
      tokens: script.slice(Number(sampling.seed % 3n)),
      before: (at) => (BigInt(at) + sampling.seed) % 3n === 0n ? Promise.resolve() : undefined,
    }),
  }));
}

Deno.test("a streamed chat says what the whole one says, byte for byte", async () => {
  await fc.assert(
    fc.asyncProperty(tokens, request, async (script, fields) => {
      const server = app(script);
      const whole = await chat(server, fields);
      const usage = { stream_options: { include_usage: true } };
      const chunks = await stream(server, CHAT, { messages: MESSAGES, ...fields, ...usage });
      const choices = whole.choices;
      assertEquals(
        chatTexts(chunks),
        choices.map(({ message }: { message: { content: string } }) => message.content),
      );
      for (const [index, { finish_reason, logprobs }] of choices.entries()) {
        const own = chunks.flatMap(({ choices }) => choices).filter((one) => one.index === index);
        assertEquals(own.at(-1).finish_reason, finish_reason);
        assertEquals(own.filter((one) => one.finish_reason !== null).length, 1);
        const scores = own.flatMap((one) => one.logprobs?.content ?? []);
        assertEquals(scores, logprobs?.content ?? []);
      }
      assertEquals(chunks.at(-1).usage, whole.usage);
      assertEquals(chunks.at(-1).entropic, whole.entropic);
    }),
    { numRuns: 200 },
  );
});

Deno.test("a streamed completion says what the whole one says, byte for byte", async () => {
  await fc.assert(
    fc.asyncProperty(tokens, request, fc.boolean(), async (script, given, echo) => {
      const server = app(script);
      const fields = { ...given, logprobs: given.logprobs ? 2 : null, echo };
      const whole = await complete(server, { prompt: ["Hi", [0xc3]], ...fields });
      const chunks = await stream(server, COMPLETIONS, { prompt: ["Hi", [0xc3]], ...fields });
      for (const [index, choice] of whole.choices.entries()) {
        const own = chunks.flatMap(({ choices }) => choices).filter((one) => one.index === index);
        assertEquals(own.map(({ text }) => text).join(""), choice.text);
        assertEquals(own.at(-1).finish_reason, choice.finish_reason);
        for (const key of Object.keys(choice.logprobs ?? {})) {
          assertEquals(own.flatMap(({ logprobs }) => logprobs[key]), choice.logprobs[key]);
        }
      }
    }),
    { numRuns: 200 },
  );
});
