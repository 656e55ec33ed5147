/**
 * Compares scheduling policies on recorded generations, the real engine and a virtual clock:
 * `deno run -A tests/eval/scheduling/compare.ts [--only TEXT] [--policies LIST] [--json]`.
 * Figures are ratios to the first policy over paired seeds, with 95 % bootstrap intervals.
 */
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import { ALL_POLICIES, runPlan } from "./simulation.ts";

const COMMAND = {
  usage: "compare.ts",
  about: "Compares scheduling policies by simulation on recorded generations.",
  options: {
    only: { value: "TEXT", help: 'cells whose name has it (default "short none cpu")' },
    policies: { value: "LIST", help: `the first is the base: ${ALL_POLICIES.join(",")}` },
    runs: { value: "N", help: "runs of each cell (default 10)" },
    count: { value: "N", help: "requests in a run (default 300)" },
    json: { help: "print one JSON document" },
  },
  operands: [0, 0],
} as const satisfies Command<string>;

await runCommand(COMMAND, async (given) => {
  const results = await runPlan({
    only: given.text("only") ?? "short none cpu",
    policies: given.text("policies")?.split(",") ?? ALL_POLICIES,
    runs: given.integer("runs", 1, 1000) ?? 10,
    count: given.integer("count", 1, 100_000) ?? 300,
  });
  if (given.flag("json")) console.log(JSON.stringify({ results }, null, 2));
});
