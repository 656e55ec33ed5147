/**
 * Runs scheduling policies on the real model; a line of JSON for each run goes to stdout, for
 * `live_report.ts`: `deno run -A tests/eval/scheduling/live.ts [--seeds 1,2,3] > runs.jsonl`
 */
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import { REAL_MODEL } from "../../support/real_model.ts";
import { LIVE_POLICIES, liveRuns } from "./live_runs.ts";

const COMMAND = {
  usage: "live.ts",
  about: "Runs scheduling policies on the real model; prints a line of JSON for each run.",
  options: {
    seeds: { value: "LIST", help: "a run of each policy for each (default 1,2,3)" },
    count: { value: "N", help: "requests in a run (default 80)" },
    load: { value: "X", help: "work that comes over work that can be done (default 1.1)" },
    only: { value: "TEXT", help: 'cells whose name has it, for example "scarce bursty"' },
    policies: { value: "LIST", help: `of ${LIVE_POLICIES.join(",")}` },
  },
  operands: [0, 0],
} as const satisfies Command<string>;

await runCommand(COMMAND, async (given) => {
  if (REAL_MODEL === undefined) throw new Error("Cannot run: the default model is not here");
  const named = given.text("policies")?.split(",") ?? LIVE_POLICIES;
  const plan = {
    seeds: (given.text("seeds") ?? "1,2,3").split(",").map(Number),
    count: given.integer("count", 1, 10_000) ?? 80,
    load: given.number("load", 0.01, 100) ?? 1.1,
    only: given.text("only") ?? "",
    policies: LIVE_POLICIES.filter((name) => named.includes(name)),
  };
  for await (const run of liveRuns(REAL_MODEL, plan)) {
    console.log(JSON.stringify(run));
    console.error(`${run.seed} ${run.memory} ${run.arrivals} ${run.policy}: done`);
  }
});
