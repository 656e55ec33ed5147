/**
 * What runs of the real model say, beside what the simulation makes of the same requests:
 * `deno run -A tests/eval/scheduling/live_report.ts runs.jsonl… [--json]`
 *
 * Intervals are over stretches of consecutive requests, each policy's paired with the same of
 * another's: requests near in time share a queue, so single ones would claim too much.
 */
import { readFile } from "node:fs/promises";
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import { type Interval, pairedRatio } from "../bootstrap.ts";
import { figuresOf, showInterval } from "./figures.ts";
import { LIVE_POLICIES, type LiveRun, liveRuns } from "./live_runs.ts";

/** Consecutive requests that count as one sample. */
const STRETCH = 16;

export interface LiveRow {
  readonly name: "scheduling-live";
  readonly memory: string;
  readonly arrivals: string;
  readonly policy: string;
  readonly runs: number;
  /** Milliseconds, over all requests. */
  readonly latency: number;
  readonly p99: number;
  readonly firstToken: number;
  readonly longestPause: number;
  /** Means to those of another policy in the same runs; as measured, and as simulated. */
  readonly ratios: Readonly<Record<string, Ratios>>;
}

interface Ratios {
  readonly latency: Interval;
  readonly firstToken: Interval;
  readonly simulated: { readonly latency: number; readonly firstToken: number };
}

/** Policies that the others are compared with. */
const BASES = ["fcfs", "mlfq", "oracle-srpt"];

export function reportLive(runs: readonly LiveRun[]): LiveRow[] {
  const cells = Map.groupBy(
    runs,
    ({ memory, arrivals, policy }) => [memory, arrivals, policy].join(),
  );
  return [...cells.values()].flatMap((of) =>
    of.slice(0, 1).map(({ memory, arrivals, policy }) => {
      const { latency, p99, firstToken, longestPause } = figuresOf(
        of.flatMap((run) => run.outcomes),
      );
      const ratios = Object.fromEntries(BASES.flatMap((base) => {
        const pairs = of.flatMap((run) => {
          const other = runs.find((one) => one.policy === base && isSameCell(one, run));
          return other === undefined ? [] : [[run, other] as const];
        });
        return pairs.length === 0 ? [] : [[base, ratiosOf(pairs)]];
      }));
      return {
        ...{ name: "scheduling-live", memory, arrivals, policy, runs: of.length } as const,
        ...{ latency, p99, firstToken, longestPause, ratios },
      };
    })
  );
}

function isSameCell(a: LiveRun, b: LiveRun): boolean {
  return a.seed === b.seed && a.memory === b.memory && a.arrivals === b.arrivals;
}

function ratiosOf(pairs: readonly (readonly [LiveRun, LiveRun])[]): Ratios {
  const samples = (side: 0 | 1, from: "outcomes" | "predicted", key: "latency" | "firstToken") =>
    pairs.flatMap((pair) => stretches(pair[side][from].map((outcome) => outcome[key])));
  const ratio = (from: "outcomes" | "predicted", key: "latency" | "firstToken") =>
    pairedRatio(samples(0, from, key), samples(1, from, key));
  return {
    latency: ratio("outcomes", "latency"),
    firstToken: ratio("outcomes", "firstToken"),
    simulated: {
      latency: ratio("predicted", "latency").value,
      firstToken: ratio("predicted", "firstToken").value,
    },
  };
}

/** Sums over stretches of consecutive values. */
function stretches(values: readonly number[]): number[] {
  const sums: number[] = [];
  values.forEach((value, i) => {
    const stretch = Math.floor(i / STRETCH);
    sums[stretch] = (sums[stretch] ?? 0) + value;
  });
  return sums;
}

function show({ memory, arrivals, policy, runs, ratios, ...figures }: LiveRow): string {
  const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`.padEnd(8);
  const { latency, p99, firstToken, longestPause } = figures;
  return [
    `${memory} ${arrivals} ${policy}`.padEnd(32),
    `${runs} runs`,
    ...[latency, p99, firstToken, longestPause].map(seconds),
    ...Object.entries(ratios).filter(([base]) => base !== policy).map(([base, of]) =>
      `/ ${base}: ${showInterval(of.latency)} (${of.simulated.latency.toFixed(2)}), first token ` +
      `${showInterval(of.firstToken)} (${of.simulated.firstToken.toFixed(2)})`
    ),
  ].join(" ");
}

/** `deno task eval scheduling-live`: one run of each policy with bursts, for a first look. */
export async function evaluateLive(spec: string): Promise<LiveRow[]> {
  const plan = { seeds: [1], count: 80, load: 1.1, only: "bursty", policies: LIVE_POLICIES };
  const runs: LiveRun[] = [];
  for await (const run of liveRuns(spec, plan)) runs.push(run);
  const rows = reportLive(runs);
  for (const row of rows) console.error(show(row));
  return rows;
}

const COMMAND = {
  usage: "live_report.ts FILE…",
  about: "Reports the runs that live.ts has printed; what was simulated stands in brackets.",
  options: { json: { help: "print one JSON document" } },
  operands: [1, 100],
} as const satisfies Command<string>;

if (import.meta.main) {
  await runCommand(COMMAND, async (given) => {
    const texts = await Promise.all(given.operands.map((path) => readFile(path, "utf8")));
    const lines = texts.flatMap((text) => text.split("\n").filter((line) => line !== ""));
    const results = reportLive(lines.map((line): LiveRun => JSON.parse(line)));
    for (const row of results) console.error(show(row));
    if (given.flag("json")) console.log(JSON.stringify({ results }, null, 2));
  });
}
