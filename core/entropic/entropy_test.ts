import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  EMPTY_SUMS,
  entropyBounds,
  mergeSums,
  sumsOf,
  uncertainty,
  uncertaintyOf,
} from "./entropy.ts";

/** Straight from the definitions: H = -sum p log p, V = sum p (log p + H)^2. */
function byDefinition(logits: readonly number[]) {
  const max = Math.max(...logits);
  const weights = logits.map((z) => Math.exp(z - max));
  const total = weights.reduce((x, y) => x + y, 0);
  const p = weights.map((w) => w / total).filter((x) => x > 0);
  const entropy = -p.reduce((sum, x) => sum + x * Math.log(x), 0);
  const varentropy = p.reduce((sum, x) => sum + x * (Math.log(x) + entropy) ** 2, 0);
  return { logZ: max + Math.log(total), entropy, varentropy };
}

const logit = fc.oneof(
  { weight: 9, arbitrary: fc.double({ min: -50, max: 50, noNaN: true }) },
  { weight: 1, arbitrary: fc.constant(-Infinity) },
);
const row = fc.array(logit, { minLength: 1, maxLength: 80 })
  .filter((logits) => logits.some(Number.isFinite));

Deno.test("uncertainty counts a masked logit as nothing", () => {
  assertEquals(uncertainty([0, -Infinity]).entropy, 0);
  assertAlmostEquals(uncertainty([0, 0, -Infinity]).entropy, Math.LN2, 1e-12);
  assertAlmostEquals(uncertainty([-Infinity, 3, 3]).logZ, 3 + Math.LN2, 1e-12);
});

Deno.test("uncertainty of a uniform row is log n with varentropy 0", () => {
  const { entropy, varentropy } = uncertainty(new Float32Array(1000).fill(-7));
  assertAlmostEquals(entropy, Math.log(1000), 1e-9);
  assertAlmostEquals(varentropy, 0, 1e-9);
});

Deno.test("uncertainty marks an unusable row by a log Z that is not finite", () => {
  for (const logits of [[0, NaN], [NaN], [1, Infinity], [-Infinity, -Infinity], []]) {
    assert(!Number.isFinite(uncertainty(logits).logZ), String(logits));
  }
});

Deno.test("uncertainty equals the definitions", () => {
  fc.assert(fc.property(row, (logits) => {
    const got = uncertainty(logits), want = byDefinition(logits);
    assertAlmostEquals(got.logZ, want.logZ, 1e-9);
    assertAlmostEquals(got.entropy, want.entropy, 1e-9);
    assertAlmostEquals(got.varentropy, want.varentropy, 1e-6);
  }));
});

Deno.test("uncertainty does not change when a constant is added to all logits", () => {
  fc.assert(fc.property(row, fc.double({ min: -1e3, max: 1e3, noNaN: true }), (logits, shift) => {
    const plain = uncertainty(logits), shifted = uncertainty(logits.map((z) => z + shift));
    assertAlmostEquals(shifted.entropy, plain.entropy, 1e-8);
    assertAlmostEquals(shifted.logZ, plain.logZ + shift, 1e-8);
  }));
});

Deno.test("mergeSums of any split equals one pass", () => {
  fc.assert(fc.property(row, fc.nat(), fc.nat(), (logits, i, j) => {
    const [from, to] = [i % (logits.length + 1), j % (logits.length + 1)].sort((x, y) => x - y);
    const parts = [logits.slice(0, from), logits.slice(from, to), logits.slice(to)].map(sumsOf);
    const got = uncertaintyOf(parts.reduce(mergeSums, EMPTY_SUMS)), want = uncertainty(logits);
    assertAlmostEquals(got.logZ, want.logZ, 1e-9);
    assertAlmostEquals(got.entropy, want.entropy, 1e-9);
    assertAlmostEquals(got.varentropy, want.varentropy, 1e-6);
  }));
});

Deno.test("entropyBounds enclose the exact entropy and meet when all is known", () => {
  fc.assert(fc.property(row, fc.nat(), (logits, cut) => {
    const sorted = logits.toSorted((x, y) => y - x);
    const k = 1 + cut % sorted.length;
    const { logZ, entropy } = uncertainty(sorted);
    const { lower, upper } = entropyBounds(sorted.slice(0, k), logZ, sorted.length);
    assert(lower <= entropy + 1e-9, `${lower} <= ${entropy}`);
    assert(upper >= entropy - 1e-9, `${upper} >= ${entropy}`);
    const whole = entropyBounds(sorted, logZ, sorted.length);
    assertAlmostEquals(whole.lower, entropy, 1e-9);
    assertAlmostEquals(whole.upper, entropy, 1e-9);
  }));
});
