/**
 * `deno task bench [NAME…] [--json]`: figures of this engine beside its peers on the same file, in
 * alternating runs. `--json` prints one document; everything else goes to stderr.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, runCommand } from "../../core/host/cli/options.ts";
import { resolveModel } from "../../core/host/store/mod.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import { MissingPeerError } from "./contender.ts";
import { converter } from "./formats.ts";
import { describeResult, measureRow, type RowResult } from "./measure_row.ts";
import type { Bench, Row } from "./row.ts";
import { DEFAULT_ROWS, findRows, ROWS } from "./rows/mod.ts";

const COMMAND = {
  usage: "bench [NAME…]",
  about: `Measures this engine beside its peers, in alternating runs. Rows:
${ROWS.map(({ name, about }) => `  ${name.padEnd(22)}  ${about}`).join("\n")}
Without names: ${DEFAULT_ROWS.join(", ")}. \`all\` runs every row.`,
  options: {
    model: { value: "M", help: "a model as `deno task model` takes it (default SmolLM2)" },
    runs: { value: "N", help: "runs of each side (default 5; long rows have fewer)" },
    json: { help: "print one JSON document" },
  },
  operands: [0, Infinity],
} as const satisfies Command<string>;

/** A row that could not run here. */
interface Skipped {
  readonly name: string;
  readonly reason: string;
}

/** Opens a row, measures it, and frees what it opened. */
async function runRow(
  row: Row,
  bench: Omit<Bench, "defer">,
  runs: number | undefined,
): Promise<RowResult> {
  const disposals: (() => Promise<void>)[] = [];
  try {
    const sides = await row.open({ ...bench, defer: (dispose) => disposals.push(dispose) });
    return await measureRow(row, sides, runs);
  } finally {
    for (const dispose of disposals) await dispose();
  }
}

await runCommand(COMMAND, async (given) => {
  const rows = findRows(given.operands.length > 0 ? given.operands : DEFAULT_ROWS);
  const runs = given.integer("runs", 1, 1000);
  const spec = given.text("model") ?? REAL_MODEL ?? "smollm2";
  const { paths: [model = spec] } = await resolveModel(spec);
  const scratch = mkdtempSync(join(tmpdir(), "entropic-bench-"));
  const converted = converter(model, scratch);
  const [results, skipped]: [RowResult[], Skipped[]] = [[], []];
  try {
    for (const row of rows) {
      try {
        const result = await runRow(row, { model, converted }, runs);
        console.error(describeResult(result));
        results.push(result);
      } catch (error) {
        if (!(error instanceof MissingPeerError)) throw error;
        console.error(`${row.name.padEnd(22)} skipped: ${error.message}`);
        skipped.push({ name: row.name, reason: error.message });
      }
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  if (given.flag("json")) console.log(JSON.stringify({ results, skipped }, null, 2));
});
