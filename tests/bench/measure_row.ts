/** Runs the sides of a row in turn and puts the result together. */
import type { Detail, Row, Side, Sides } from "./row.ts";
import { summarise, type Summary } from "./statistics.ts";

const DEFAULT_RUNS = 5;

/** This engine in another setting; `ratio` is the row's value over this one. */
export interface OtherResult {
  readonly name: string;
  readonly value: number;
  readonly ratio: number;
  readonly spread: number;
}

/** A row of the result. A ratio is `value / peer_value`; missing peers leave nulls. */
export interface RowResult {
  readonly name: string;
  /** The median of the runs. */
  readonly value: number;
  readonly unit: string;
  readonly peer: string | null;
  readonly peer_value: number | null;
  readonly ratio: number | null;
  /** (largest - smallest) / median. */
  readonly spread: number;
  readonly peer_spread: number | null;
  readonly runs: number;
  readonly others?: readonly OtherResult[];
  /** Peers that are not here, and how to get them. */
  readonly missing?: readonly string[];
  /** What the value is made of. */
  readonly details?: readonly Detail[];
}

interface Measured extends Summary {
  readonly name: string;
}

/**
 * Measures every side `runs` times, alternating, so that whatever disturbs the machine disturbs all
 * alike. A first run does not count, where a side needs one to warm up.
 */
export async function measureRow(
  row: Pick<Row, "name" | "unit" | "better" | "runs">,
  sides: Sides,
  runs: number = row.runs ?? DEFAULT_RUNS,
): Promise<RowResult> {
  const { own, peers = [], others = [], missing = [] } = sides;
  const [mine, ...rest] = await alternate([own, ...peers, ...others], runs);
  if (mine === undefined) throw new RangeError(`Cannot measure ${row.name}: it has no sides`);
  const best = bestOf(rest.slice(0, peers.length), row.better);
  const settings = rest.slice(peers.length);
  const details = await sides.details?.();
  return {
    name: row.name,
    value: mine.median,
    unit: row.unit,
    peer: best?.name ?? null,
    peer_value: best?.median ?? null,
    ratio: best === undefined ? null : mine.median / best.median,
    spread: mine.spread,
    peer_spread: best?.spread ?? null,
    runs,
    ...(settings.length > 0 && {
      others: settings.map(({ name, median, spread }) => (
        { name, value: median, ratio: mine.median / median, spread }
      )),
    }),
    ...(missing.length > 0 && { missing }),
    ...(details && { details }),
  };
}

async function alternate(sides: readonly Side[], runs: number): Promise<Measured[]> {
  const values = sides.map((): number[] => []);
  for (let run = 0; run <= runs; run++) {
    for (const [at, side] of sides.entries()) {
      if (run === 0 && side.warmsUp === true) continue;
      const value = await side.measure();
      if (run > 0) values[at]?.push(value);
    }
  }
  return sides.map(({ name }, at) => ({ name, ...summarise(values[at] ?? []) }));
}

function bestOf(measured: readonly Measured[], better: Row["better"]): Measured | undefined {
  const sign = better === "more" ? -1 : 1;
  return [...measured].sort((a, b) => sign * (a.median - b.median))[0];
}

/** One line for people, and one for each other setting. */
export function describeResult(result: RowResult): string {
  const { name, value, unit, peer, peer_value, ratio, spread, others = [], missing = [] } = result;
  const { details = [] } = result;
  const figure = (value: number | null) => `${Number(value?.toPrecision(3))} ${unit}`;
  const percent = (100 * spread).toFixed(0);
  const own = `${figure(value)} (spread ${percent} %)`;
  const other = peer === null ? "no peer" : `${peer} ${figure(peer_value)}`;
  const first = [name.padEnd(22), own.padEnd(32), other.padEnd(36), ratio?.toFixed(2) ?? ""];
  return [
    first.join(" ").trimEnd(),
    ...others.map(({ name, value, ratio }) =>
      `${" ".repeat(22)} ${figure(value).padEnd(32)} ${name.padEnd(36)} ${ratio.toFixed(2)}`
    ),
    ...missing.map((line) => `${" ".repeat(22)} ${line}`),
    ...details.map((detail) => `${" ".repeat(22)} ${describeDetail(detail)}`),
  ].join("\n");
}

function describeDetail(detail: Detail): string {
  const figures = Object.entries(detail);
  return figures.map(([name, x]) => typeof x === "string" ? x : `${name} ${x}`).join(", ");
}
