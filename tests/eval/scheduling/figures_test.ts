import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { figuresOf, meanFigures, ratiosTo } from "./figures.ts";

const outcomeOf = (latency: number) => ({
  latency,
  firstToken: latency / 10,
  longestPause: latency / 100,
  tokens: 5,
});

Deno.test("figuresOf takes means, the tail, and the targets that were met", () => {
  const outcomes = Array.from({ length: 200 }, (_, i) => outcomeOf(10 * (i + 1)));
  const arrivals = outcomes.map((_, i) => i < 100 ? {} : { wishes: { latencyTarget: 1500 } });
  const figures = figuresOf(outcomes, arrivals);
  assertAlmostEquals(figures.latency, 1005);
  assertEquals(figures.p99, 1990);
  assertAlmostEquals(figures.firstToken, 100.5);
  assertEquals(figures.longestPause, 20);
  assertEquals(figures.met, 0.5);
  assertEquals(figuresOf(outcomes).met, 0);
});

Deno.test("ratiosTo pairs run with run", () => {
  const runs = [1, 2, 5].map((scale) => figuresOf([outcomeOf(scale), outcomeOf(3 * scale)]));
  const doubled = runs.map((run) => ({ ...run, latency: 2 * run.latency }));
  const { latency, p99 } = ratiosTo(runs, doubled);
  assertEquals(latency, { value: 2, low: 2, high: 2 });
  assertEquals(p99, { value: 1, low: 1, high: 1 });
  assertAlmostEquals(meanFigures(runs).latency, 16 / 3);
  const { low, high } = ratiosTo(runs, [...runs].reverse()).latency;
  assert(low < 1 && high > 1, "differences between runs show in the interval");
});
