import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { Counter, Gauge, Histogram, Registry as PromRegistry } from "prom-client";
import { Registry } from "./prometheus.ts";

/** Lines without the empty ones, which the format ignores. */
const lines = (text: string) => text.split("\n").filter((line) => line !== "");

Deno.test("Registry writes what prom-client writes", async () => {
  const observations = fc.array(
    fc.record({
      label: fc.string({ unit: fc.constantFrom(...'ab"\\\n é') }),
      value: fc.double({ min: 0, max: 20, noNaN: true }),
    }),
    { minLength: 1 },
  );
  await fc.assert(fc.asyncProperty(observations, async (all) => {
    const ours = new Registry();
    const theirs = { registers: [new PromRegistry()], labelNames: ["label"] };
    const bounds = [0.5, 1, 10];
    const counter = ours.counter("c_total", "Counts");
    const gauge = ours.gauge("g", "Gauges");
    const histogram = ours.histogram("h_seconds", "Buckets", bounds);
    const promCounter = new Counter({ name: "c_total", help: "Counts", ...theirs });
    const promGauge = new Gauge({ name: "g", help: "Gauges", ...theirs });
    const promHistogram = new Histogram({
      name: "h_seconds",
      help: "Buckets",
      buckets: bounds,
      ...theirs,
    });
    for (const { label, value } of all) {
      counter.add({ label }, value);
      promCounter.inc({ label }, value);
      gauge.set(value, { label });
      promGauge.set({ label }, value);
      histogram.observe(value, { label });
      promHistogram.observe({ label }, value);
    }
    const [registry] = theirs.registers;
    assertEquals(lines(ours.toString()), lines(await registry!.metrics()));
  }));
});

Deno.test("Registry refuses a name twice", () => {
  const registry = new Registry();
  registry.counter("a_total", "A");
  assertThrows(() => registry.gauge("a_total", "A"), TypeError, "already registered");
});
