import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { expectedTokens, hazard, NO_EVIDENCE, observeEnd } from "./hazard.ts";

const probability = fc.double({ min: 1e-9, max: 1, noNaN: true });

Deno.test("hazard starts at the common rate and goes to what the sequence shows", () => {
  assertAlmostEquals(hazard(NO_EVIDENCE, 0.02), 0.02, 1e-12);
  let evidence = NO_EVIDENCE;
  for (let t = 0; t < 400; t++) evidence = observeEnd(evidence, 0.2);
  assertAlmostEquals(hazard(evidence, 0.02), (8 * 0.02 + 0.2 / 0.03) / (8 + 1 / 0.03), 1e-4);
});

Deno.test("hazard stays within (0, 0.9]", () => {
  fc.assert(fc.property(fc.array(probability), probability, (seen, rate) => {
    const h = hazard(seen.reduce(observeEnd, NO_EVIDENCE), rate);
    assert(h > 0 && h <= 0.9);
  }));
});

Deno.test("expectedTokens is the mean of a geometric distribution, cut at the most", () => {
  const h = 0.1, most = 12;
  let mean = 0, alive = 1;
  for (let t = 1; t <= most; t++) {
    mean += alive;
    alive *= 1 - h;
  }
  assertAlmostEquals(expectedTokens(h, most), mean, 1e-12);
});

Deno.test("expectedTokens lies between 1 and the most, falling with the hazard", () => {
  const tokens = fc.integer({ min: 1, max: 1e6 });
  const rate = fc.double({ min: 1e-9, max: 0.9, noNaN: true });
  fc.assert(fc.property(rate, rate, tokens, (a, b, most) => {
    const [low, high] = a < b ? [a, b] : [b, a];
    const left = expectedTokens(low, most);
    assert(left >= 1 && left <= most);
    assert(expectedTokens(high, most) <= left + 1e-6 * left);
  }));
  assertEquals(expectedTokens(0.5, 1), 1);
});
