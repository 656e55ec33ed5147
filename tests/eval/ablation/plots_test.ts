import { assertEquals } from "@std/assert";
import { divergencePlot, sharePlot, tablePlot } from "./plots.ts";
import type { SweepRow } from "./sweep.ts";
import type { Ratio, Row } from "./table.ts";

const RATIO: Ratio = { value: 0.8, low: 0.7, high: 0.9, median: 0.8, spread: 0.1 };
const row = (policy: Row["policy"]) =>
  ({
    policy,
    workload: "code",
    ratios: { latency: RATIO, throughput: RATIO, dtau_dc: RATIO },
  }) as unknown as Row;
const step = (length: number, batch: number, mass: number) =>
  ({ length, batch, mass, time: RATIO, bytes: 0.3, macs: 0.5, kl: 0.01 }) as unknown as SweepRow;

/** The rows of data that a plot has. */
const valuesOf = ({ data }: Readonly<Record<string, unknown>>) =>
  (data as { readonly values: readonly Record<string, unknown>[] }).values;

Deno.test("tablePlot has a bar with its interval for each column of each policy but the baseline", () => {
  const values = valuesOf(tablePlot([row("baseline"), row("all")]));
  assertEquals(values.map(({ policy }) => policy), ["all", "all", "all"]);
  assertEquals(values.map(({ low, high }) => [low, high]), new Array(3).fill([0.7, 0.9]));
});

Deno.test("divergencePlot has a point for each length, batch and mass, dense among them", () => {
  const rows = [step(1024, 1, 1), step(1024, 8, 0.9)];
  assertEquals(
    valuesOf(divergencePlot(rows)).map(({ batch, mass, value }) => [batch, mass, value]),
    [["batch 1", 1, 0.8], ["batch 8", 0.9, 0.8]],
  );
});

Deno.test("sharePlot has bytes and multiply-adds of what is pruned, of one batch size", () => {
  const rows = [step(1024, 1, 1), step(1024, 1, 0.9), step(1024, 8, 0.9)];
  assertEquals(valuesOf(sharePlot(rows)), [
    { length: 1024, mass: 0.9, share: 0.3, of: "bytes" },
    { length: 1024, mass: 0.9, share: 0.5, of: "multiply-adds" },
  ]);
});
