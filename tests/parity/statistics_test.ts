/** Statistics of logits, as the core computes them in f32 vectors, against plain double precision. */
import { assert, assertAlmostEquals, assertEquals, assertFalse } from "@std/assert";
import { supports } from "../../wasm/loader.ts";
import { exactStatistics } from "../support/exact_statistics.ts";
import { normals, randomNumbers } from "../support/random.ts";
import { Probe } from "./probe.ts";

const END = 2;
const VARIANTS = (["simd128", "relaxed"] as const).filter(supports);

/** Rows of logits by name. */
function rows(): Record<string, Float32Array> {
  const random = randomNumbers(11);
  return {
    "a whole vocabulary": normals(49152, 3, random),
    "no multiple of four": normals(1003, 2, random),
    "uniform": new Float32Array(1000).fill(-7),
    "one certain": normals(5000, 1, random).map((z, id) => id === 4321 ? 200 : z),
    "masked": normals(600, 2, random).map((z, id) => id % 3 ? -Infinity : z),
    "[0, -Infinity, 0]": Float32Array.of(0, -Infinity, 0),
    "ties": Float32Array.from({ length: 999 }, (_, id) => id % 5),
    "ascending": Float32Array.from({ length: 2000 }, (_, id) => id / 100),
    "descending": Float32Array.from({ length: 2000 }, (_, id) => -id / 100),
    "large": normals(4000, 1e4, random),
  };
}

for (const variant of VARIANTS) {
  Deno.test(`${variant} statistics equal those in double precision`, async () => {
    const probe = await Probe.open(variant);
    for (const [name, logits] of Object.entries(rows())) {
      const topK = Math.min(64, logits.length);
      const actual = probe.statistics(logits, END, topK);
      const expected = exactStatistics(logits, END, topK);
      assertEquals(actual.max, expected.max, name);
      assertEquals(actual.topIds, expected.topIds, name);
      assertEquals(actual.topLogits, expected.topLogits, name);
      assertAlmostEquals(actual.logZ, expected.logZ, 1e-6 * Math.max(1, Math.abs(expected.logZ)));
      assertAlmostEquals(actual.entropy, expected.entropy, 1e-5, name);
      assertAlmostEquals(actual.varentropy, expected.varentropy, 1e-4, name);
      assertAlmostEquals(actual.endProbability, expected.endProbability, 1e-6, name);
    }
  });

  Deno.test(`${variant} statistics of an unusable row are not finite`, async () => {
    const probe = await Probe.open(variant);
    const spoiled = (...values: number[]) => {
      const logits = normals(500, 1, randomNumbers(5));
      logits.set(values, 250);
      return probe.statistics(logits, END, 8).logZ;
    };
    assert(Number.isFinite(spoiled(1)));
    assertFalse(Number.isFinite(spoiled(NaN)));
    assertFalse(Number.isFinite(spoiled(Infinity)));
    const masked = new Float32Array(500).fill(-Infinity);
    assertFalse(Number.isFinite(probe.statistics(masked, END, 8).logZ));
  });
}
