import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { randomNumbers } from "../../tests/support/random.ts";
import {
  type EndEvidence,
  expectedTokens,
  FIRST_HAZARD,
  hazard,
  type HazardModel,
  NO_EVIDENCE,
  observeDraw,
  observeEnd,
} from "./hazard.ts";

const evidenceOf = (...ends: number[]): EndEvidence =>
  ends.map((endProbability) => ({ endProbability, entropy: 2 })).reduce(observeEnd, NO_EVIDENCE);

Deno.test("observeEnd averages the latest distributions", () => {
  const { ends, entropy, weight } = evidenceOf(...Array.from({ length: 400 }, () => 0.2));
  assertAlmostEquals(entropy / weight, 2, 1e-12);
  assertAlmostEquals(ends / weight, 0.2, 1e-12);
  assertAlmostEquals(weight, 1 / 0.03, 1e-3);
});

Deno.test("hazard rises with the evidence of ending and falls with age", () => {
  const at = (age: number, p: number) => hazard(FIRST_HAZARD, { age, evidence: evidenceOf(p) });
  assert(at(10, 0.3) > at(10, 0.01));
  assert(at(10, 0.01) > at(200, 0.01));
});

Deno.test("observeDraw finds the rates of work that is nothing like its first guess", () => {
  // Ends depend on the evidence alone, with rates 0.2 and 0.02 for two kinds of sequences.
  const random = randomNumbers(3);
  let model = FIRST_HAZARD;
  for (let sequence = 0; sequence < 1500; sequence++) {
    const rate = random() < 0.5 ? 0.2 : 0.02;
    const evidence = evidenceOf(rate);
    for (let age = 1, ended = false; !ended && age < 100; age++) {
      ended = random() < rate;
      model = observeDraw(model, { age, evidence, ended });
    }
  }
  for (const rate of [0.2, 0.02]) {
    for (const age of [2, 20]) {
      const h = hazard(model, { age, evidence: evidenceOf(rate) });
      assertAlmostEquals(h, rate, 0.2 * rate, `at age ${age}`);
    }
  }
});

Deno.test("observeDraw keeps its numbers finite and its certainty within the first guess's", () => {
  const probability = fc.double({ min: 0, max: 1, noNaN: true });
  const draw = fc.record({
    age: fc.integer({ min: 1, max: 1e6 }),
    evidence: fc.array(probability, { minLength: 1, maxLength: 5 }).map((p) => evidenceOf(...p)),
    ended: fc.boolean(),
  });
  fc.assert(fc.property(fc.array(draw, { minLength: 1, maxLength: 200 }), (draws) => {
    let model: HazardModel = FIRST_HAZARD;
    for (const seen of draws) {
      const h = hazard(model, seen);
      assert(h > 0 && h <= 0.9, String(h));
      model = observeDraw(model, seen);
    }
    for (const i of [0, 1, 2, 3]) {
      const variance = model.covariance[i]![i]!;
      assert(variance > 0 && variance <= FIRST_HAZARD.covariance[i]![i]!, String(variance));
    }
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
