import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { uncertainty } from "../../entropic/entropy.ts";
import type { LogitStats, TokenLogits } from "../backend.ts";
import type { SamplingParams, SequenceRequest } from "../engine.ts";
import { drawByDefinition, rankedIds } from "../../../tests/support/draw_by_definition.ts";
import { LogitAdjuster } from "./logit_adjuster.ts";
import { sampleFromStats } from "./sampler.ts";

type Params = Omit<SamplingParams, "seed">;

function adjusterOf(params: Params, fields: Partial<SequenceRequest> = {}): LogitAdjuster {
  const sampling = { seed: 0n, ...params };
  return new LogitAdjuster({ prompt: [1], sampling, maxTokens: 9, ...fields }, new Set([0]));
}

function statsOf(logits: Float32Array, topK: number): LogitStats {
  const ids = rankedIds(logits).slice(0, topK);
  const exact = uncertainty(logits);
  return {
    ...exact,
    // As a backend in single precision finds it.
    logZ: Math.fround(exact.logZ),
    max: Math.max(...logits),
    endProbability: 0,
    topIds: Uint32Array.from(ids),
    topLogits: Float32Array.from(ids, (id) => logits[id]!),
  };
}

/** The token that statistics settle which list them all; undefined where none is possible. */
function draw(logits: ArrayLike<number>, params: Params, u = 0.5) {
  const row = Float32Array.from(logits), stats = statsOf(row, row.length);
  return sampleFromStats({ seed: 0n, ...params }, stats, adjusterOf(params), row.length, u);
}

const row = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.double({ min: -12, max: 12, noNaN: true }) },
    { weight: 2, arbitrary: fc.constantFrom(0, 1, 5) },
    { weight: 1, arbitrary: fc.constant(-Infinity) },
  ),
  { minLength: 2, maxLength: 300 },
).map((logits) => Float32Array.from([...logits, 1]));

const params: fc.Arbitrary<Params> = fc.record({
  temperature: fc.constantFrom(0, 1e-40, 1e-5, 0.3, 0.7, 1, 1.5, 3, 100, 1e4, 1e30),
  topK: fc.constantFrom(0, 0, 1, 3, 10, 1000),
  topP: fc.constantFrom(1, 1, 0.99, 0.9, 0.5, 1e-9),
  minP: fc.constantFrom(0, 0, 0.01, 0.3, 1),
});

const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

Deno.test("sampleFromStats of all tokens equals the stages by definition", () => {
  fc.assert(
    fc.property(row, params, unit, (logits, given, u) => {
      assertEquals(draw(logits, given, u), drawByDefinition(logits, given, u));
    }),
    { numRuns: 2000 },
  );
});

Deno.test("sampleFromStats of some tokens never differs from the definition, whatever the adjustments", () => {
  const lowering = fc.record({
    repetitionPenalty: fc.constantFrom(1, 1.3, 0.5, 0.01),
    presencePenalty: fc.constantFrom(0, 1, -1),
    frequencyPenalty: fc.constantFrom(0, 0.5, -2),
    logitBias: fc.array(
      fc.tuple(fc.nat(2), fc.constantFrom(-Infinity, -100, -1, 2, 100)),
      { maxLength: 2 },
    ),
  });
  let settled = 0, more = 0, open = 0;
  fc.assert(
    fc.property(
      row,
      params,
      lowering,
      unit,
      fc.constantFrom(1, 2, 8, 64, 400),
      (logits, filters, changes, u, topK) => {
        const sampling = { seed: 0n, ...filters, ...changes };
        const adjuster = adjusterOf(sampling);
        for (const token of [2, 2, 0]) adjuster.observe(token);
        if (!adjuster.adjustAll(logits).some((logit) => logit > -Infinity)) return;
        const stats = statsOf(logits, topK);
        const ids = adjuster.touched(),
          touched = { ids, logits: Float32Array.from(ids, (id) => logits[id]!) };
        const from = (touched?: TokenLogits) =>
          sampleFromStats(sampling, stats, adjuster, logits.length, u, touched);
        const quick = from(), known = from(touched);
        if (known === undefined) {
          assertEquals(quick, undefined);
          return void open++;
        }
        if (quick === undefined) more++;
        else settled++;
        const token = drawByDefinition(adjuster.adjustAll(logits), sampling, u);
        assertEquals([quick ?? token, known], [token, token]);
      },
    ),
    { numRuns: 3000 },
  );
  assert(
    settled > 500 && more > 100 && open > 100,
    `${settled} settled, ${more} with what is touched, ${open} left open`,
  );
});

Deno.test("sampleFromStats leaves open what it cannot know where a raised token dwarfs the others", () => {
  const logits = new Float32Array(49152);
  logits[3] = logits[7] = 1;
  const sampling = { seed: 0n, frequencyPenalty: -2, temperature: 100 };
  const adjuster = adjusterOf(sampling);
  for (let i = 0; i < 400; i++) adjuster.observe(7);
  const stats = statsOf(logits, 2),
    touched = { ids: Uint32Array.of(7), logits: Float32Array.of(1) };
  for (const u of [0, 0.3, 0.9]) {
    const token = sampleFromStats(sampling, stats, adjuster, logits.length, u, touched);
    const expected = drawByDefinition(adjuster.adjustAll(logits), sampling, u);
    assert(token === undefined || token === expected, `${token} for ${expected}`);
  }
});

Deno.test("sampleFromStats settles what a few candidates can settle", () => {
  const logits = Float32Array.from({ length: 1000 }, (_, id) => -id / 4);
  const settled = (given: Params, u: number) =>
    sampleFromStats({ seed: 0n, ...given }, statsOf(logits, 32), adjusterOf(given), 1000, u);
  assertEquals(settled({ temperature: 0 }, 0), 0);
  assertEquals(settled({ topK: 32 }, 0.9999) !== undefined, true);
  assertEquals(settled({ topK: 33 }, 0), undefined);
  assertEquals(settled({ topP: 0.95 }, 0.9999) !== undefined, true);
  assertEquals(settled({ minP: 0.01 }, 0.9999) !== undefined, true);
  assertEquals(settled({}, 0.5), draw(logits, {}, 0.5));
  assertEquals(settled({}, 0.9999999), undefined);
  assertEquals(settled({ temperature: 0.7 }, 0.9), draw(logits, { temperature: 0.7 }, 0.9));
  assertEquals(settled({ temperature: 5 }, 0.9), undefined);
});

Deno.test("sampleFromStats draws in proportion to softmax(logits / temperature)", () => {
  const logits = [2, 1, 0, -1, -Infinity], temperature = 1.7, draws = 10_000;
  const counts = logits.map(() => 0);
  for (let i = 0; i < draws; i++) counts[draw(logits, { temperature }, (i + 0.5) / draws)!]!++;
  const weights = logits.map((z) => Math.exp(z / temperature));
  const total = weights.reduce((x, y) => x + y, 0);
  for (const [id, count] of counts.entries()) {
    assertAlmostEquals(count / draws, weights[id]! / total, 1e-3);
  }
});

Deno.test("sampleFromStats at a tiny temperature is greedy, without NaN", () => {
  for (const temperature of [1e-5, 1e-40, Number.MIN_VALUE]) {
    for (const u of [0, 0.5, 1 - 2 ** -53]) {
      assertEquals(draw([1, 3, 2.999, -Infinity], { temperature }, u), 1);
    }
  }
  assertEquals(draw([3, 3, 1], { temperature: 1e-40 }, 0.25), 0);
  assertEquals(draw([3, 3, 1], { temperature: 1e-40 }, 0.75), 1);
});

Deno.test("sampleFromStats breaks greedy ties by the lower id", () => {
  assertEquals(draw([1, 5, 5, 5], { temperature: 0 }), 1);
});

Deno.test("sampleFromStats obeys a bias of 100 and of -Infinity", () => {
  const logits = Float32Array.from({ length: 50 }, (_, id) => id / 10);
  assertEquals(draw(logits, { logitBias: [[3, 100]] }, 0.99), 3);
  assertEquals(draw(logits, { logitBias: [[49, -100]], temperature: 0 }), 48);
  for (let u = 0; u < 1; u += 0.01) {
    assert(draw(logits, { logitBias: [[49, -Infinity]] }, u) !== 49);
  }
});
