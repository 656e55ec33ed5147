/**
 * `deno task ablation [--quick] [--json]`: the paper's table (arXiv 2603.03310) on the real engine. One
 * thread of the WASM backend, in this process. `--json` prints one document; the rest goes to stderr.
 */
import { type Arguments, type Command, runCommand } from "../../../core/host/cli/options.ts";
import { TEMPERATURE_LAWS, type TemperatureLaw } from "../../../core/entropic/temperature.ts";
import { openSubject } from "../subject.ts";
import { type Experiment, runExperiment } from "./experiment.ts";
import { POLICIES, type PolicyName } from "./policies.ts";
import { promptsOf } from "./prompts.ts";
import { showRow, showSynergy } from "./show.ts";
import { blocksFor, FULL, type Plan, QUICK } from "./sizes.ts";
import type { Report, Row, Synergy } from "./table.ts";
import { type WorkloadName, WORKLOADS } from "./workloads.ts";

const COMMAND = {
  usage: "ablation [WORKLOAD…]",
  about: `Measures each entropic layer, each pair and all of them against none.
Workloads: ${WORKLOADS.join(", ")}
Policies: ${Object.keys(POLICIES).join(", ")}`,
  options: {
    quick: { help: "long-context only, smaller; the baseline and all" },
    json: { help: "print one JSON document" },
    policies: { value: "A,B", help: "these only, and the baseline" },
    repeats: { value: "N", help: "runs of each policy (default 5, with --quick 3)" },
    mass: { value: "P", help: "share of the attention that is kept (default 0.9)" },
    "min-blocks": { value: "N", help: "blocks that attention reads at least (default 24)" },
    temperature: { value: "T", help: "of every request (default 0.7)" },
    law: { value: "L", help: "of the sampling layer (default stabilized)" },
    target: { value: "H", help: "its entropy in nats (default: the baseline's own)" },
    tail: { value: "X", help: "patience of the scheduling layer (default 100)" },
    model: { value: "M", help: "a model as `deno task model` takes it (default SmolLM2)" },
  },
  operands: [0, WORKLOADS.length],
} as const satisfies Command<string>;

const CLOCK = "processor time of this process, between arrivals skipped";

type Given = Arguments<keyof typeof COMMAND.options>;

/** @throws {RangeError} One of them is not among those allowed. */
function chosen<T extends string>(what: string, given: readonly string[], allowed: readonly T[]) {
  return given.map((name): T => {
    const found = allowed.find((one) => one === name);
    if (found !== undefined) return found;
    throw new RangeError(`Cannot run ${what} "${name}": it takes ${allowed.join(", ")}`);
  });
}

function planOf(given: Given): Plan {
  const plan = given.flag("quick") ? QUICK : FULL;
  const named = Object.keys(plan.workloads) as WorkloadName[];
  const wanted = given.operands.length > 0 ? chosen("workload", given.operands, named) : named;
  const list = given.text("policies")?.split(",");
  const every = Object.keys(POLICIES) as PolicyName[];
  const policies = list === undefined ? plan.policies : chosen("policy", list, every);
  return {
    ...plan,
    workloads: Object.fromEntries(wanted.map((name) => [name, plan.workloads[name]])),
    policies: [...new Set<PolicyName>(["baseline", ...policies])],
    repeats: given.integer("repeats", 1, 1000) ?? plan.repeats,
  };
}

function settingsOf(given: Given): Experiment["settings"] {
  const laws: readonly TemperatureLaw[] = TEMPERATURE_LAWS;
  const [law = "stabilized"] = chosen("law", [given.text("law") ?? "stabilized"], laws);
  const tail = given.number("tail", Number.MIN_VALUE, Number.MAX_VALUE);
  return {
    temperature: given.number("temperature", 0.01, 10) ?? 0.7,
    law,
    ...(tail !== undefined && { tail }),
    attention: {
      mass: given.number("mass", 0.01, 1) ?? 0.9,
      minBlocks: given.integer("min-blocks", 0, 1e6) ?? 24,
    },
  };
}

/** Runs what was asked for; logs each run. */
async function measure(given: Given): Promise<Report> {
  const log = (line: string) => console.error(line);
  const plan = planOf(given), settings = settingsOf(given);
  const { policies, repeats, scored, workloads } = plan;
  const model = given.text("model") ?? "smollm2";
  await using subject = await openSubject(model, blocksFor(plan), given.flag("quick"));
  const { backend, tokenizer, template } = subject;
  if (template === undefined) throw new TypeError(`Cannot run ${model}: it has no chat template`);
  const results: Row[] = [], synergy: Synergy[] = [], targets: Record<string, number> = {};
  for (const [name, size] of Object.entries(workloads)) {
    const workload = name as WorkloadName;
    const prompts = await promptsOf(workload, size.document, tokenizer, template);
    const target = given.number("target", 0, 100);
    const run = { workload, size, prompts, policies, repeats, scored, target, settings, log };
    const found = await runExperiment(backend, run);
    results.push(...found.rows);
    synergy.push(...found.synergy);
    targets[workload] = found.target;
  }
  const setup = { model, backend: backend.describe(), ...settings, targets, repeats, scored };
  return { setup: { ...setup, sizes: workloads, clock: CLOCK }, results, synergy };
}

await runCommand(COMMAND, async (given) => {
  const report = await measure(given);
  for (const row of report.results) console.error(showRow(row));
  for (const one of report.synergy) console.error(showSynergy(one));
  if (given.flag("json")) console.log(JSON.stringify(report, null, 2));
});
