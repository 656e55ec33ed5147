import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { randomNumbers } from "../support/random.ts";
import { bootstrap, pairedRatio } from "./bootstrap.ts";

Deno.test("pairedRatio of equal runs is 1 for sure", () => {
  assertEquals(pairedRatio([3, 5, 9], [3, 5, 9]), { value: 1, low: 1, high: 1 });
});

Deno.test("pairedRatio sees through what both runs of a pair have in common", () => {
  const random = randomNumbers(2);
  const base = Array.from({ length: 12 }, () => 1 + 9 * random());
  const better = base.map((x) => 0.9 * x * (1 + 0.02 * (random() - 0.5)));
  const { value, low, high } = pairedRatio(better, base);
  assertAlmostEquals(value, 0.9, 0.01);
  assert(low < value && value < high && high - low < 0.02);
});

Deno.test("bootstrap gives any statistic an interval of plausible width", () => {
  const random = randomNumbers(3);
  const values = Array.from({ length: 400 }, () => random());
  const meanOf = (runs: readonly number[]) =>
    runs.reduce((sum, run) => sum + (values[run] ?? NaN), 0) / runs.length;
  const { value, low, high } = bootstrap(values.length, meanOf);
  assertAlmostEquals(value, 0.5, 0.06);
  // 1.96 standard errors of a uniform's mean to each side.
  assertAlmostEquals(high - low, 2 * 1.96 * Math.sqrt(1 / 12 / 400), 0.01);
});
