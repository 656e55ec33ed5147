import { assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { uncertainty } from "./entropy.ts";
import { temperedRow } from "./tempered_row.ts";

/** By the definition, on the scaled logits. */
const exact = (logits: ArrayLike<number>, temperature: number) =>
  uncertainty(Array.from(logits, (z) => z / temperature));

Deno.test("temperedRow equals the exact pass on a whole vocabulary", () => {
  const random = randomNumbers(8);
  for (let round = 0; round < 4; round++) {
    const logits = normals(49152, 1 + round, random);
    for (let i = 0; i < 8; i++) logits[i] = 10 + 10 * random();
    const at = temperedRow(logits);
    for (const temperature of [0.1, 0.3, 0.7, 1, 1.5, 4, 50]) {
      const got = at(temperature), want = exact(logits, temperature);
      assertAlmostEquals(got.entropy, want.entropy, 1e-5);
      assertAlmostEquals(got.varentropy, want.varentropy, 1e-4);
      assertAlmostEquals(got.logZ, want.logZ, 1e-5 * Math.max(1, want.logZ));
    }
  }
});

Deno.test("temperedRow keeps close to the exact pass on any row", () => {
  const logit = fc.oneof(
    { weight: 9, arbitrary: fc.double({ min: -60, max: 60, noNaN: true }) },
    { weight: 1, arbitrary: fc.constant(-Infinity) },
  );
  const row = fc.array(logit, { minLength: 1, maxLength: 200 })
    .filter((logits) => logits.some(Number.isFinite));
  fc.assert(fc.property(row, fc.double({ min: 0.1, max: 50, noNaN: true }), (logits, t) => {
    const got = temperedRow(logits)(t), want = exact(logits, t);
    assertAlmostEquals(got.entropy, want.entropy, 1e-3);
    assertAlmostEquals(got.varentropy, want.varentropy, 1e-2);
  }));
});

Deno.test("temperedRow of equal logits is log n, of one token 0, at any temperature", () => {
  for (const temperature of [0.01, 1, 100]) {
    assertAlmostEquals(temperedRow([7, 7, 7, -Infinity])(temperature).entropy, Math.log(3), 1e-12);
    assertEquals(temperedRow([-3, -Infinity])(temperature).entropy, 0);
  }
});
