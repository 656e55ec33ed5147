import { assert, assertAlmostEquals, assertEquals, assertNotEquals } from "@std/assert";
import { arrivalsOf, type Prompts, type Size } from "./workloads.ts";

const ids = (...tokens: number[]) => Uint32Array.from(tokens);
const PROMPTS: Prompts = {
  document: ids(1, 2, 3),
  about: [ids(10), ids(11), ids(12)],
  alone: [ids(20), ids(21)],
};
const SIZE: Size = {
  document: 3,
  requests: 6,
  slots: 2,
  maxTokens: [16, 64],
  fixedLength: true,
};

Deno.test("arrivalsOf gives the same requests for the same seed, others for another", () => {
  assertEquals(arrivalsOf(PROMPTS, SIZE, 3), arrivalsOf(PROMPTS, SIZE, 3));
  assertNotEquals(arrivalsOf(PROMPTS, SIZE, 3), arrivalsOf(PROMPTS, SIZE, 4));
});

Deno.test("arrivalsOf gives every request a seed of its own", () => {
  const seeds = [1, 2].flatMap((seed) =>
    arrivalsOf(PROMPTS, SIZE, seed).map(({ asked }) => asked.seed)
  );
  assertEquals(new Set(seeds).size, seeds.length);
});

Deno.test("arrivalsOf asks about the document every other time where both kinds are there", () => {
  const starts = arrivalsOf(PROMPTS, SIZE, 1).map(({ asked }) => asked.prompt[0]);
  assertEquals(starts.map((token) => token === 1), [true, false, true, false, true, false]);
  const about = arrivalsOf({ ...PROMPTS, alone: [] }, SIZE, 1);
  assert(about.every(({ asked: { prompt } }) => prompt.length === 4 && prompt[2] === 3));
  const questions = about.slice(0, 3).map(({ asked: { prompt } }) => prompt[3]);
  assertEquals(new Set(questions).size, 3, "no question twice before all were asked");
});

Deno.test("arrivalsOf lets requests come at once, or spread by the load", () => {
  assert(arrivalsOf(PROMPTS, SIZE, 1).every(({ at }) => at === 0));
  const requests = 4000;
  const times = arrivalsOf(PROMPTS, { ...SIZE, requests, load: 0.5 }, 1).map(({ at }) => at);
  assert(times.every((at, i) => at >= (times[i - 1] ?? 0)));
  assertAlmostEquals(times.at(-1) ?? 0, 2, 0.15, "half the load takes twice the time to come");
});

Deno.test("arrivalsOf draws token limits from the list, and passes on whether they are met", () => {
  const asked = arrivalsOf(PROMPTS, { ...SIZE, requests: 50 }, 1).map((one) => one.asked);
  assertEquals(new Set(asked.map(({ maxTokens }) => maxTokens)), new Set([16, 64]));
  assert(asked.every(({ ignoreEos }) => ignoreEos === true));
});
