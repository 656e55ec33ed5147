/**
 * `deno task bench [NAME…] [--json]`: figures of this engine beside its peers on the same file, in
 * alternating runs. `--json` prints one document; everything else goes to stderr. Where it is stopped,
 * or a row fails, the document has what was measured until then.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type Command, runCommand } from "../../core/host/cli/options.ts";
import { resolveModel } from "../../core/host/store/mod.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import { converter } from "./formats.ts";
import { Report } from "./report.ts";
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

await runCommand(COMMAND, async (given) => {
  const rows = findRows(given.operands.length > 0 ? given.operands : DEFAULT_ROWS);
  const runs = given.integer("runs", 1, 1000);
  const spec = given.text("model") ?? REAL_MODEL ?? "smollm2";
  const { paths: [model = spec] } = await resolveModel(spec);
  const scratch = mkdtempSync(join(tmpdir(), "entropic-bench-"));
  const converted = converter(model, scratch);
  const report = new Report();
  const end = () => {
    rmSync(scratch, { recursive: true, force: true });
    if (given.flag("json")) console.log(JSON.stringify(report, null, 2));
  };
  // What was measured is worth as much where something else was slow or failed.
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
    process.once(signal, () => {
      end();
      process.exit(code);
    });
  }
  try {
    for (const row of rows) await report.measure(row, { model, converted }, runs);
  } finally {
    end();
  }
});
