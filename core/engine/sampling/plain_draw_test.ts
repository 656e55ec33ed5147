import { assertEquals } from "@std/assert";
import { EventQueue } from "../event_queue.ts";
import type { SamplingParams } from "../engine.ts";
import { Sequence } from "../sequence.ts";
import { plainDraw } from "./plain_draw.ts";
import { uniform } from "./random.ts";

function sequenceOf(sampling: Omit<SamplingParams, "seed">, minTokens = 0): Sequence {
  const request = { prompt: [1, 2], sampling: { seed: 9n, ...sampling }, maxTokens: 9, minTokens };
  const events = new EventQueue(4, { drained: () => {}, abandoned: () => {} });
  return new Sequence(1, request, { events, arrival: 0, endTokens: [0] });
}

Deno.test("plainDraw has the request's filters and the number of the token's turn", () => {
  const sequence = sequenceOf({ temperature: 0.5, topP: 0.9 });
  for (const index of [0, 3]) {
    const expected = { topK: 0, topP: 0.9, minP: 0, temperature: 0.5, u: uniform(9n, index) };
    assertEquals(plainDraw(sequence, index), expected);
  }
});

Deno.test("plainDraw is none where something else decides as well", () => {
  assertEquals(plainDraw(sequenceOf({ presencePenalty: 1 }), 0), undefined);
  assertEquals(plainDraw(sequenceOf({ temperatureControl: { law: "seed" } }), 0), undefined);
  const banned = sequenceOf({}, 2);
  assertEquals([0, 1, 2].map((index) => plainDraw(banned, index) !== undefined), [
    false,
    false,
    true,
  ]);
});
