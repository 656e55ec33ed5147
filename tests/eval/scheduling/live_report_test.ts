import { assertAlmostEquals, assertEquals } from "@std/assert";
import { reportLive } from "./live_report.ts";
import type { LiveRun } from "./live_runs.ts";

const MACHINE = { step: 1, decode: 1, prefill: 1, swap: 1 };

function runOf(policy: LiveRun["policy"], seed: number, scale: number): LiveRun {
  const outcomes = Array.from({ length: 40 }, (_, i) => ({
    latency: scale * (100 + i),
    firstToken: 10 * scale,
    longestPause: scale,
    tokens: 3,
  }));
  const cell = { seed, memory: "scarce", arrivals: "bursty", load: 1, policy };
  return { ...cell, before: MACHINE, machine: MACHINE, outcomes, predicted: outcomes };
}

Deno.test("reportLive compares a policy with those that ran the same requests", () => {
  const runs = [1, 2].flatMap((seed) => [runOf("fcfs", seed, 2), runOf("entropic", seed, 1)]);
  const rows = reportLive([...runs, runOf("fcfs", 3, 1000)]);
  assertEquals(rows.map(({ policy, runs }) => [policy, runs]), [["fcfs", 3], ["entropic", 2]]);
  const ratios = rows[1]?.ratios ?? {};
  assertEquals(Object.keys(ratios), ["fcfs"], "nobody else ran");
  assertAlmostEquals(ratios.fcfs?.latency.value ?? 0, 0.5);
  assertAlmostEquals(ratios.fcfs?.simulated.firstToken ?? 0, 0.5);
  assertEquals(rows[1]?.longestPause, 1);
});
