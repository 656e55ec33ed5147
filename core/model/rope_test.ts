import { assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import type { RopeConfig } from "./config.ts";
import { ropeFrequencies } from "./rope.ts";

const plain: RopeConfig = { base: 10000, dimensions: 8, scaling: { type: "none" } };

function assertClose(actual: Float64Array, expected: readonly number[]): void {
  assertEquals(actual.length, expected.length);
  expected.forEach((value, i) => assertAlmostEquals(actual[i]!, value, 1e-6 * value));
}

Deno.test("ropeFrequencies falls from 1 by the base", () => {
  const { inverse, scale } = ropeFrequencies(plain);
  assertClose(inverse, [1, 0.1, 0.01, 0.001]);
  assertEquals(scale, 1);
});

Deno.test("ropeFrequencies divides by the linear factor", () => {
  const { inverse, scale } = ropeFrequencies({ ...plain, scaling: { type: "linear", factor: 4 } });
  assertClose(inverse, [0.25, 0.025, 0.0025, 0.00025]);
  assertEquals(scale, 1);
});

Deno.test("ropeFrequencies divides each frequency by its own factor", () => {
  assertClose(ropeFrequencies(plain, [1, 2, 4, 8]).inverse, [1, 0.05, 0.0025, 0.000125]);
});

Deno.test("ropeFrequencies keeps fast pairs and interpolates slow ones under YaRN", () => {
  // Turns over 4096 positions: 32 at pair 32 ln(4096 / (32 * 2 pi)) / ln 10000 = 10.47, so 10;
  // 1 at pair 22.5, so 23. Between them the blend is linear.
  const scaling = {
    type: "yarn",
    factor: 4,
    originalContext: 4096,
    attentionFactor: 1,
    betaFast: 32,
    betaSlow: 1,
  } as const;
  const { inverse, scale } = ropeFrequencies({ base: 10000, dimensions: 64, scaling });
  const ratio = ropeFrequencies({ ...plain, dimensions: 64 }).inverse.map((f, i) =>
    inverse[i]! / f
  );
  for (let pair = 0; pair <= 10; pair++) assertAlmostEquals(ratio[pair]!, 1, 1e-6);
  for (let pair = 23; pair < 32; pair++) assertAlmostEquals(ratio[pair]!, 0.25, 1e-6);
  assertAlmostEquals(ratio[16]!, 1 - 0.75 * 6 / 13, 1e-6);
  assertAlmostEquals(scale, 1 + 0.1 * Math.log(4), 1e-12);
});

Deno.test("ropeFrequencies refuses factors of the wrong number or value", () => {
  assertThrows(() => ropeFrequencies(plain, [1, 2]), RangeError, "expected 4 factors");
  for (const bad of [0, -1, NaN, Infinity]) {
    assertThrows(() => ropeFrequencies(plain, [1, 1, bad, 1]), RangeError, "factor 2");
  }
});
