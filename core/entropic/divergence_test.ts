import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { divergence } from "./divergence.ts";

const row = (length: number) =>
  fc.array(fc.float({ min: -20, max: 20, noNaN: true }), { minLength: length, maxLength: length })
    .map((values) => Float32Array.from(values));
const pairs = fc.integer({ min: 1, max: 40 }).chain((length) => fc.tuple(row(length), row(length)));

Deno.test("divergence is that of the definition", () => {
  const logits = (...p: number[]) => Float32Array.from(p, Math.log);
  const expected = 0.5 * Math.log(0.5 / 0.25) + 0.3 * Math.log(0.3 / 0.5) +
    0.2 * Math.log(0.2 / 0.25);
  assertAlmostEquals(divergence(logits(0.5, 0.3, 0.2), logits(0.25, 0.5, 0.25)), expected, 1e-6);
});

Deno.test("divergence is never negative, and 0 from a row shifted by a constant", () => {
  fc.assert(fc.property(pairs, ([p, q]) => {
    assert(divergence(p, q) >= 0);
    assertAlmostEquals(divergence(p, p.map((logit) => logit + 3)), 0, 1e-5);
  }));
});

Deno.test("divergence takes masked logits: nothing where p has none, infinite where only q does", () => {
  const p = Float32Array.of(1, -Infinity, 2), q = Float32Array.of(1, 5, 2);
  assert(divergence(p, q) > 0 && divergence(p, q) < Infinity);
  assertEquals(divergence(p, p), 0);
  assertEquals(divergence(q, p), Infinity);
});

Deno.test("divergence is NaN where a row is no distribution", () => {
  const fine = Float32Array.of(1, 2), none = Float32Array.of(-Infinity, -Infinity);
  for (const bad of [none, Float32Array.of(NaN, 1), Float32Array.of(Infinity, 1)]) {
    assertEquals([divergence(fine, bad), divergence(bad, fine)], [NaN, NaN]);
  }
});
