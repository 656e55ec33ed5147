/** What a bench has measured, and what it prints of that, however it ends. */
import { describeResult, RowMeasurement, type RowResult } from "./measure_row.ts";
import { MissingPeerError } from "./contender.ts";
import type { Bench, Row } from "./row.ts";

/** A row that could not run here. */
interface Skipped {
  readonly name: string;
  readonly reason: string;
}

export class Report {
  readonly #results: RowResult[] = [];
  readonly #skipped: Skipped[] = [];
  /** The row under way. */
  #current: RowMeasurement | undefined;

  /** Opens a row, measures it, tells of it on stderr, and frees what it opened. */
  async measure(row: Row, bench: Omit<Bench, "defer">, runs: number | undefined): Promise<void> {
    const disposals: (() => Promise<void>)[] = [];
    try {
      const sides = await row.open({ ...bench, defer: (dispose) => disposals.push(dispose) });
      this.#current = new RowMeasurement(row, sides);
      const result = await this.#current.run(runs);
      this.#results.push(result);
      this.#current = undefined;
      console.error(describeResult(result));
    } catch (error) {
      if (!(error instanceof MissingPeerError)) throw error;
      this.#skipped.push({ name: row.name, reason: error.message });
      console.error(`${row.name.padEnd(22)} skipped: ${error.message}`);
    } finally {
      for (const dispose of disposals) await dispose();
    }
  }

  /** With the row under way as far as it is. */
  toJSON(): { readonly results: readonly RowResult[]; readonly skipped: readonly Skipped[] } {
    const current = this.#current?.soFar();
    return { results: [...this.#results, ...current ? [current] : []], skipped: this.#skipped };
  }
}
