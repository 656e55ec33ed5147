import { assertEquals } from "@std/assert";
import { verdictOf } from "./claims.ts";

const between = (low: number, high: number) => ({ value: (low + high) / 2, low, high });

Deno.test("verdictOf goes by the whole interval, lower being better for latency", () => {
  assertEquals(verdictOf("latency", between(0.6, 0.65), 0.7), "passed");
  assertEquals(verdictOf("latency", between(0.65, 0.75), 0.7), "reproduced");
  assertEquals(verdictOf("latency", between(0.8, 0.9), 0.7), "less");
  assertEquals(verdictOf("latency", between(0.95, 1.05), 0.7), "none");
  assertEquals(verdictOf("latency", between(1.1, 1.2), 0.7), "loss");
});

Deno.test("verdictOf goes by the whole interval, higher being better for the others", () => {
  assertEquals(verdictOf("throughput", between(1.5, 1.6), 1.4), "passed");
  assertEquals(verdictOf("throughput", between(1.3, 1.5), 1.4), "reproduced");
  assertEquals(verdictOf("dtau_dc", between(1.1, 1.2), 1.4), "less");
  assertEquals(verdictOf("dtau_dc", between(0.9, 1.1), 1.4), "none");
  assertEquals(verdictOf("dtau_dc", between(0.8, 0.9), 1.4), "loss");
});

Deno.test("verdictOf finds no effect where an interval holds both the claim and 1", () => {
  assertEquals(verdictOf("latency", between(0.9, 1.1), 0.98), "none");
});
