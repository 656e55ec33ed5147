/**
 * The table: each policy's figures over those of the baseline on the same workload, and whether the
 * layers together do more than one by one (synergy, the paper's super-additivity).
 */
import { summarise } from "../../bench/statistics.ts";
import { bootstrap, type Interval, pairedRatio, sumOf } from "../bootstrap.ts";
import { type Figures, mean } from "./figures.ts";
import type { PolicyName } from "./policies.ts";
import type { Quality } from "./quality.ts";
import type { WorkloadName } from "./workloads.ts";

/** The columns of the paper's table, and which figure each is made of. */
const COLUMNS = {
  latency: "latency",
  throughput: "throughput",
  dtau_dc: "nats_per_second",
} as const satisfies Record<string, keyof Figures>;

export type Column = keyof typeof COLUMNS;

/** A ratio to the baseline: of means over the repeats, paired by seed. */
export interface Ratio extends Interval {
  /** Of the repeats' own ratios. */
  readonly median: number;
  /** (largest - smallest) / median of those. */
  readonly spread: number;
}

/** A row as the JSON has it. */
export interface Row extends Readonly<Record<Column, number>> {
  readonly policy: PolicyName;
  readonly workload: WorkloadName;
  readonly quality: Quality;
  readonly repeats: number;
  /** With 95 % intervals; the three columns again among them. */
  readonly ratios: Readonly<Record<Column | RatioFigure, Ratio>>;
  /** Means over the repeats. */
  readonly absolute: Figures;
}

/** Other figures whose ratios are given. */
const OTHERS = [
  "ttft",
  "latency_p99",
  "latency_per_token",
  "gap_p50",
  "nats_per_gigaflop",
  "nats_per_gigabyte",
  "nats_per_token",
] as const satisfies readonly (keyof Figures)[];
type RatioFigure = typeof OTHERS[number];

/** @param base Runs of the baseline, paired with `runs`. */
export function rowOf(
  policy: PolicyName,
  workload: WorkloadName,
  runs: readonly Figures[],
  base: readonly Figures[],
  quality: Quality,
): Row {
  const columns = Object.entries(COLUMNS) as [Column, keyof Figures][];
  const keys: [Column | RatioFigure, keyof Figures][] = [
    ...columns,
    ...OTHERS.map((key): [RatioFigure, RatioFigure] => [key, key]),
  ];
  const ratios = Object.fromEntries(
    keys.map(([name, key]) => [name, ratioOf(runs, base, key)]),
  ) as Row["ratios"];
  return {
    policy,
    workload,
    latency: ratios.latency.value,
    throughput: ratios.throughput.value,
    dtau_dc: ratios.dtau_dc.value,
    quality,
    repeats: runs.length,
    ratios,
    absolute: meanFigures(runs),
  };
}

function ratioOf(runs: readonly Figures[], base: readonly Figures[], key: keyof Figures): Ratio {
  const values = runs.map((run) => run[key]), against = base.map((run) => run[key]);
  const each = values.map((value, i) => value / (against[i] as number));
  return { ...pairedRatio(values, against), ...summarise(each) };
}

function meanFigures(runs: readonly Figures[]): Figures {
  const [first] = runs;
  if (first === undefined) throw new RangeError("Cannot make a row of no runs");
  const keys = Object.keys(first) as (keyof Figures)[];
  return Object.fromEntries(
    keys.map((key) => [key, mean(runs.map((run) => run[key]))]),
  ) as unknown as Figures;
}

/** All layers against the product of each alone. */
export interface Synergy {
  readonly workload: WorkloadName;
  readonly column: Column;
  readonly all: number;
  /** Of the ratios of the three layers alone. */
  readonly product: number;
  /** `all` over `product`; super-additive where it is below 1 for latency, above 1 for the others. */
  readonly excess: Interval;
}

const PARTS = ["sampling", "scheduling", "attention"] as const;

/** @returns Nothing where a layer was not run alone. */
export function synergyOf(
  workload: WorkloadName,
  runs: ReadonlyMap<PolicyName, readonly Figures[]>,
): Synergy[] {
  if ([...PARTS, "all", "baseline"].some((policy) => !runs.has(policy as PolicyName))) return [];
  return (Object.entries(COLUMNS) as [Column, keyof Figures][]).map(([column, key]) => {
    const sum = (policy: PolicyName, drawn: readonly number[]) =>
      sumOf((runs.get(policy) ?? []).map((run) => run[key]), drawn);
    const ratio = (policy: PolicyName, drawn: readonly number[]) =>
      sum(policy, drawn) / sum("baseline", drawn);
    const product = (drawn: readonly number[]) =>
      PARTS.reduce((result, part) => result * ratio(part, drawn), 1);
    const every = (runs.get("all") ?? []).map((_, i) => i);
    return {
      workload,
      column,
      all: ratio("all", every),
      product: product(every),
      excess: bootstrap(every.length, (drawn) => ratio("all", drawn) / product(drawn)),
    };
  });
}

/** The document that `--json` prints. */
export interface Report {
  readonly setup: Readonly<Record<string, unknown>>;
  readonly results: readonly Row[];
  readonly synergy: readonly Synergy[];
}
