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
  /** The bench was stopped before every side had all its runs. */
  readonly incomplete?: true;
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
 * Measures every side of a row `runs` times, alternating, so that whatever disturbs the machine disturbs
 * all alike. A first run does not count, where a side needs one to warm up.
 */
export class RowMeasurement {
  readonly #row: Pick<Row, "name" | "unit" | "better" | "runs">;
  readonly #sides: Sides;
  /** Values by side, as they come. */
  readonly #values = new Map<Side, number[]>();
  #details: readonly Detail[] | undefined;
  #complete = false;

  constructor(row: Pick<Row, "name" | "unit" | "better" | "runs">, sides: Sides) {
    this.#row = row;
    this.#sides = sides;
  }

  /** Runs to the end. */
  async run(runs: number = this.#row.runs ?? DEFAULT_RUNS): Promise<RowResult> {
    const { own, peers = [], others = [] } = this.#sides;
    for (let run = 0; run <= runs; run++) {
      for (const side of [own, ...peers, ...others]) {
        if (run === 0 && side.warmsUp === true) continue;
        const value = await side.measure();
        if (run > 0) this.#values.set(side, [...this.#values.get(side) ?? [], value]);
      }
    }
    this.#details = await this.#sides.details?.();
    this.#complete = true;
    const result = this.soFar();
    if (result === undefined) throw new RangeError(`Cannot measure ${this.#row.name} in 0 runs`);
    return result;
  }

  /** What was measured until now; `undefined` before the row's own side has its first value. */
  soFar(): RowResult | undefined {
    const { own, peers = [], others = [], missing = [] } = this.#sides;
    const [mine] = this.#measured([own]);
    if (mine === undefined) return undefined;
    const best = bestOf(this.#measured(peers), this.#row.better);
    const settings = this.#measured(others);
    return {
      name: this.#row.name,
      value: mine.median,
      unit: this.#row.unit,
      peer: best?.name ?? null,
      peer_value: best?.median ?? null,
      ratio: best === undefined ? null : mine.median / best.median,
      spread: mine.spread,
      peer_spread: best?.spread ?? null,
      runs: this.#values.get(own)?.length ?? 0,
      ...(!this.#complete && { incomplete: true }),
      ...(settings.length > 0 && {
        others: settings.map(({ name, median, spread }) => (
          { name, value: median, ratio: mine.median / median, spread }
        )),
      }),
      ...(missing.length > 0 && { missing }),
      ...(this.#details && { details: this.#details }),
    };
  }

  /** Those of the sides that have values. */
  #measured(sides: readonly Side[]): Measured[] {
    return sides.flatMap((side) => {
      const values = this.#values.get(side);
      return values === undefined ? [] : [{ name: side.name, ...summarise(values) }];
    });
  }
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
