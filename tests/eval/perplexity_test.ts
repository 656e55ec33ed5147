import { assertAlmostEquals, assertEquals, assertRejects } from "@std/assert";
import { perplexity } from "./perplexity.ts";

Deno.test("perplexity counts the second half of each whole window", async () => {
  const seen: number[][] = [];
  // The log-probability of token i + 1 is minus its own value.
  const score = (window: Uint32Array) => {
    seen.push([...window]);
    return Promise.resolve([...window.subarray(1)].map((token) => -token));
  };
  const tokens = Uint32Array.of(9, 9, 9, 1, 9, 9, 9, 3, 9);
  const { ppl, windows, tokens: counted, error } = await perplexity(tokens, score, 4);
  assertEquals(seen, [[9, 9, 9, 1], [9, 9, 9, 3]]);
  assertEquals([windows, counted], [2, 2]);
  assertAlmostEquals(ppl, Math.exp(2));
  assertAlmostEquals(error, Math.exp(2));
});

Deno.test("perplexity takes the first windows only where told so", async () => {
  const score = (window: Uint32Array) => Promise.resolve(new Array(window.length - 1).fill(-1));
  const { windows, tokens } = await perplexity(new Uint32Array(100), score, 10, 3);
  assertEquals([windows, tokens], [3, 12]);
});

Deno.test("perplexity refuses a text shorter than a window", async () => {
  await assertRejects(
    () => perplexity(new Uint32Array(3), () => Promise.resolve([]), 4),
    RangeError,
  );
});
