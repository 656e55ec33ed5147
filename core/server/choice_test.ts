import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ByteTokenizer } from "../../tests/support/byte_tokenizer.ts";
import { OverloadedError } from "../errors.ts";
import type { EndEvent, FinishReason, TokenEvent } from "../engine/engine.ts";
import { TextStream } from "../model/text_stream.ts";
import { Choice, type ChoiceDelta } from "./choice.ts";

const tokenizer = new ByteTokenizer();

function token(id: number): TokenEvent {
  return {
    type: "token",
    token: id,
    logprob: -1,
    entropy: 0.5,
    varentropy: 0.1,
    endProbability: 0.01,
    temperature: 1,
    top: [],
  };
}

function end(reason: FinishReason): EndEvent {
  return {
    type: "end",
    reason,
    usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 1 },
    timings: { queued: 0, prefill: 0, decode: 0 },
    tau: 0,
    cost: { flops: 0, weightBytes: 0, kvBytes: 0, seconds: 0 },
  };
}

/** Runs the tokens until a stop string, then the end that the engine would send. */
function play(tokens: Iterable<number>, stop: readonly string[] = []): ChoiceDelta[] {
  const choice = new Choice(0, tokenizer, new TextStream(tokenizer, stop));
  const deltas: (ChoiceDelta | undefined)[] = [];
  for (const id of tokens) {
    if (!choice.stopped) deltas.push(choice.take(token(id)));
  }
  deltas.push(choice.take(end(choice.stopped ? "abort" : "length")));
  return deltas.filter((delta) => delta !== undefined);
}

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (deltas: readonly ChoiceDelta[]) => deltas.map(({ text }) => text).join("");

Deno.test("Choice gives text only in whole characters", () => {
  const deltas = play(bytes("né€😀"));
  assertEquals(deltas.map(({ text }) => text), ["n", "é", "€", "😀", ""]);
  assertEquals(deltas.map(({ tokens }) => tokens.length), [1, 2, 3, 4, 0]);
});

Deno.test("Choice ends with a replacement character where the tokens end inside one", () => {
  assertEquals(textOf(play([0x61, 0xf0, 0x9f])), "a\ufffd");
});

Deno.test("Choice stops at a stop string and gives neither its text nor its tokens", () => {
  const deltas = play(bytes("one STOP two"), ["STOP"]);
  assertEquals(textOf(deltas), "one ");
  const shown = deltas.flatMap(({ tokens }) => tokens.map((event) => event.token));
  assertEquals(tokenizer.decode(shown), "one ");
  assertEquals(deltas.at(-1)?.end?.reason, "stop");
});

Deno.test("Choice gives out what only looked like a stop string", () => {
  const deltas = play(bytes("one STO"), ["STOP"]);
  assertEquals(textOf(deltas), "one STO");
  assertEquals(deltas.at(-1)?.end?.reason, "length");
});

Deno.test("Choice sums the entropy of its tokens", () => {
  assertEquals(play(bytes("abcd")).at(-1)?.end?.entropySum, 2);
});

Deno.test("Choice refuses an abort that it did not ask for", () => {
  const choice = new Choice(0, tokenizer, new TextStream(tokenizer, []));
  choice.take(token(0x61));
  assertThrows(() => choice.take(end("abort")), OverloadedError);
});

Deno.test("Choice gives every byte sequence as decoding it whole does, with or without stops", () => {
  const stops = fc.array(
    fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom(..."ab€") }),
  );
  const text = fc.string({ unit: fc.constantFrom(..."ab€😀\n"), maxLength: 30 });
  fc.assert(fc.property(text, stops, (whole, stop) => {
    const found = stop.map((one) => whole.indexOf(one)).filter((index) => index >= 0);
    // The stop string that is complete first ends the text, wherever it began.
    const given = textOf(play(bytes(whole), stop));
    assert(whole.startsWith(given));
    assertEquals(given === whole, found.length === 0);
    for (const one of stop) assert(!given.includes(one));
  }));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 20 }), (raw) => {
    assertEquals(textOf(play(raw)), new TextDecoder("utf-8", { ignoreBOM: true }).decode(raw));
  }));
});

Deno.test("Choice stops at a stop string that only the end of the tokens completes", () => {
  const deltas = play([0x61, 0xf0, 0x9f], ["\ufffd"]);
  assertEquals(textOf(deltas), "a");
  assertEquals(deltas.at(-1)?.end?.reason, "stop");
});
