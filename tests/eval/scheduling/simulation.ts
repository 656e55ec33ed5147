/** Simulated runs of several policies on the same requests, and the rows that report them. */
import type { Interval } from "../bootstrap.ts";
import { type Cell, CELLS, nameOf, recordedTraces, scenarioOf } from "./cells.ts";
import { CONTENDERS, POLICIES, VARIANTS } from "./contenders.ts";
import { type Figures, figuresOf, meanFigures, ratiosTo, showInterval } from "./figures.ts";
import { type Scenario, simulate } from "./simulate.ts";
import type { Trace } from "./traces.ts";

export interface Row extends Cell {
  readonly name: "scheduling";
  readonly policy: string;
  readonly runs: number;
  /** Means over the runs; milliseconds, and a share. */
  readonly absolute: Figures;
  /** To the first policy, over paired runs. */
  readonly ratio: Readonly<Record<keyof Figures, Interval>>;
}

export interface Plan {
  /** Text that the names of the cells have. */
  readonly only: string;
  /** Of `CONTENDERS`; the first is what the others are compared with. */
  readonly policies: readonly string[];
  /** Runs of each cell, and requests in a run. */
  readonly runs: number;
  readonly count: number;
}

/** Runs what the plan says, a row on stderr as soon as it is known. */
export async function runPlan({ only, policies, runs, count }: Plan): Promise<Row[]> {
  const traces = await recordedTraces();
  const rows: Row[] = [];
  for (const cell of CELLS) {
    if (!nameOf(cell).includes(only)) continue;
    const figures = new Map(policies.map((name): [string, Figures[]] => [name, []]));
    for (let seed = 1; seed <= runs; seed++) {
      const scenario = scenarioOf(cell, traces, count, seed);
      for (const [name, of] of figures) of.push(await runOnce(scenario, name));
    }
    const base = figures.get(policies[0] ?? "") ?? [];
    for (const [policy, of] of figures) {
      const [absolute, ratio] = [meanFigures(of), ratiosTo(base, of)];
      const row: Row = { name: "scheduling", ...cell, policy, runs, absolute, ratio };
      console.error(show(row));
      rows.push(row);
    }
  }
  return rows;
}

/** `deno task eval scheduling`: the cells with mixed limits at load 0.9, in fewer runs. */
export function evaluateScheduling(): Promise<Row[]> {
  const policies = [...Object.keys(POLICIES), "without entropies"];
  return runPlan({ only: "mixed 0.9 short none cpu", policies, runs: 3, count: 200 });
}

/** Names that a list given by a user may have. */
export const ALL_POLICIES: readonly string[] = [...Object.keys(POLICIES), ...Object.keys(VARIANTS)];

async function runOnce(scenario: Scenario, name: string): Promise<Figures> {
  const contender = CONTENDERS[name];
  if (contender === undefined) {
    throw new RangeError(`Cannot compare "${name}": policies are ${ALL_POLICIES.join(", ")}`);
  }
  const { policy, view = (trace: Trace) => trace } = contender;
  const arrivals = scenario.arrivals.map((one) => ({ ...one, trace: view(one.trace) }));
  const outcomes = await simulate({ ...scenario, arrivals }, policy(scenario.arrivals));
  return figuresOf(outcomes, arrivals);
}

function show(row: Row): string {
  const { policy, absolute, ratio } = row;
  const seconds = (milliseconds: number) => `${(milliseconds / 1000).toFixed(2)} s`;
  const { latency, p99, firstToken, pause, longestPause, met } = absolute;
  return [
    nameOf(row).padEnd(46),
    policy.padEnd(19),
    ...[ratio.latency, ratio.p99, ratio.firstToken].map((one) => showInterval(one).padEnd(18)),
    ...[latency, p99, firstToken, pause, longestPause].map((one) => seconds(one).padEnd(9)),
    met > 0 ? `met ${met.toFixed(3)}, ${showInterval(ratio.met)}` : "",
  ].join(" ").trimEnd();
}
