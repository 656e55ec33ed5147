import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import type { Figures } from "./figures.ts";
import type { PolicyName } from "./policies.ts";
import { rowOf, synergyOf } from "./table.ts";

const NONE: Figures = {
  latency: 1,
  latency_p99: 1,
  latency_per_token: 1,
  throughput: 1,
  ttft: 1,
  gap_p50: 1,
  gap_p99: 1,
  nats_per_second: 1,
  nats_per_gigaflop: 1,
  nats_per_gigabyte: 1,
  nats_per_token: 1,
  attention_bytes: 1,
  attention_macs: 1,
  mass_dropped: 0,
  tokens: 1,
  entropy: 1,
  temperature: 1,
  text_perplexity: 1,
  distinct_2: 1,
  repeated_4: 0,
  wall_seconds: 1,
};
const QUALITY = { ppl_ratio: 1, kl: 0, top1: 1, basis: "" };

/** Runs whose latency is `factor` times the machine's pace in each repeat, speed its inverse. */
const runs = (factor: number, paces = [2, 3, 5]): Figures[] =>
  paces.map((pace) => ({
    ...NONE,
    latency: factor * pace,
    throughput: 1 / factor / pace,
    nats_per_second: 1 / factor / pace,
  }));

Deno.test("rowOf gives ratios to the baseline's runs of the same repeats", () => {
  const row = rowOf("all", "code", runs(0.5), runs(1), QUALITY);
  assertEquals([row.policy, row.workload, row.repeats], ["all", "code", 3]);
  for (const value of Object.values(row.ratios.latency).slice(0, 4)) assertAlmostEquals(value, 0.5);
  assertAlmostEquals(row.ratios.latency.spread, 0);
  assertAlmostEquals(row.throughput, 2);
  assertAlmostEquals(row.dtau_dc, 2);
  assertAlmostEquals(row.absolute.latency, 0.5 * 10 / 3);
});

Deno.test("synergyOf holds all layers against the product of each alone", () => {
  const found = (all: number) =>
    synergyOf(
      "mixed",
      new Map<PolicyName, Figures[]>([
        ["baseline", runs(1)],
        ["sampling", runs(1)],
        ["scheduling", runs(0.8)],
        ["attention", runs(0.5)],
        ["all", runs(all)],
      ]),
    );
  const [latency, throughput, dtau] = found(0.4);
  assertEquals([latency?.column, throughput?.column, dtau?.column], [
    "latency",
    "throughput",
    "dtau_dc",
  ]);
  assertAlmostEquals(latency?.product ?? NaN, 0.4);
  assertAlmostEquals(latency?.excess.value ?? NaN, 1);
  const [better] = found(0.3);
  assertAlmostEquals(better?.excess.value ?? NaN, 0.75);
  assert((better?.excess.high ?? NaN) < 1);
});

Deno.test("synergyOf says nothing where a layer was not run alone", () => {
  const some = new Map<PolicyName, Figures[]>([["baseline", runs(1)], ["all", runs(1)]]);
  assertEquals(synergyOf("mixed", some), []);
});
