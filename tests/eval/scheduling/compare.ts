/**
 * Compares scheduling policies on recorded generations, the real engine and a virtual clock:
 * `deno run -A tests/eval/scheduling/compare.ts [--seeds N] [--count N] [--json]`.
 * Figures are ratios to fcfs over paired seeds, with 95 % bootstrap intervals.
 */
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import { createPolicy } from "../../../core/engine/policies/mod.ts";
import type { Policy } from "../../../core/engine/policy.ts";
import { type Interval, pairedRatio } from "../bootstrap.ts";
import { arrivalsOf, type Demand } from "./arrivals.ts";
import { oracleSrpt } from "./oracle.ts";
import type { Outcome } from "./drive.ts";
import { type Arrival, simulate } from "./simulate.ts";
import type { Machine } from "./trace_backend.ts";
import { type Recording, restore, type Trace } from "./traces.ts";

const RECORDING = new URL("../../data/generations.json", import.meta.url);

/** The default model on one core, batches up to 8; a swapped block is a copy of 360 KiB. */
const MACHINE: Machine = { step: 17, decode: 3.2, prefill: 3.5, swap: 0.1 };
const SLOTS = 8;

/** Blocks: enough for all slots, and for about half of them. */
const MEMORY = { plentiful: 4096, scarce: 80 };
const ARRIVALS = { poisson: 1, bursty: 0.5 };
const LIMITS = { mixed: [32, 64, 128, 256, 384], equal: [384] };
const LOADS = [0.7, 0.9, 1.1];

const POLICIES: Readonly<Record<string, (arrivals: readonly Arrival[]) => Policy>> = {
  fcfs: () => createPolicy("fcfs"),
  paper: () => createPolicy("paper"),
  mlfq: () => createPolicy("mlfq"),
  sjf: () => createPolicy("sjf"),
  "entropic": () => createPolicy("entropic"),
  "entropic-blind": () => createPolicy("entropic"),
  "entropic-tail-20": () => createPolicy("entropic", 20),
  "oracle-srpt": oracleSrpt,
};

interface Figures {
  readonly latency: number;
  readonly p99: number;
  readonly firstToken: number;
  readonly pause: number;
}

interface Row {
  readonly policy: string;
  readonly memory: string;
  readonly arrivals: string;
  readonly limits: string;
  readonly load: number;
  /** Milliseconds, means over the seeds. */
  readonly absolute: Figures;
  readonly ratio: Readonly<Record<keyof Figures, Interval>>;
}

function figuresOf(outcomes: readonly Outcome[]): Figures {
  const mean = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((sum, outcome) => sum + of(outcome), 0) / outcomes.length;
  const sorted = outcomes.map(({ latency }) => latency).sort((a, b) => a - b);
  return {
    latency: mean(({ latency }) => latency),
    p99: sorted[Math.floor(0.99 * sorted.length)] as number,
    firstToken: mean(({ firstToken }) => firstToken),
    pause: mean(({ longestPause }) => longestPause),
  };
}

async function compareCell(
  traces: readonly Trace[],
  demand: Demand,
  kvBlocks: number,
  seeds: number,
): Promise<Map<string, Figures[]>> {
  const runs = new Map<string, Figures[]>(Object.keys(POLICIES).map((name) => [name, []]));
  for (let seed = 1; seed <= seeds; seed++) {
    const arrivals = arrivalsOf(traces, demand, MACHINE, SLOTS, seed);
    const blinded = arrivals.map((one) => ({ ...one, trace: blind(one.trace) }));
    const scenario = { arrivals, machine: MACHINE, kvBlocks, slots: SLOTS };
    for (const [name, create] of Object.entries(POLICIES)) {
      const seen = name === "entropic-blind" ? { ...scenario, arrivals: blinded } : scenario;
      runs.get(name)?.push(figuresOf(await simulate(seen, create(arrivals))));
    }
  }
  return runs;
}

/** The same generation with its entropies hidden: what `entropic` does without them. */
function blind(trace: Trace): Trace {
  return { ...trace, entropy: new Float64Array(trace.length).fill(2) };
}

function toRows(runs: Map<string, Figures[]>, cell: Omit<Row, "policy" | "absolute" | "ratio">) {
  const base = runs.get("fcfs") ?? [];
  return [...runs].map(([policy, figures]): Row => {
    const of = (key: keyof Figures) => figures.map((one) => one[key]);
    const mean = (key: keyof Figures) => of(key).reduce((x, y) => x + y, 0) / figures.length;
    const ratio = (key: keyof Figures) => pairedRatio(of(key), base.map((one) => one[key]));
    const every = <T>(make: (key: keyof Figures) => T) => ({
      latency: make("latency"),
      p99: make("p99"),
      firstToken: make("firstToken"),
      pause: make("pause"),
    });
    return { policy, ...cell, absolute: every(mean), ratio: every(ratio) };
  });
}

function show({ policy, memory, arrivals, limits, load, absolute, ratio }: Row): string {
  const cell = ({ value, low, high }: Interval) =>
    `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
  const seconds = (milliseconds: number) => (milliseconds / 1000).toFixed(2);
  return [
    `${memory} ${arrivals} ${limits} ${load}`.padEnd(29),
    policy.padEnd(17),
    ...[ratio.latency, ratio.p99, ratio.firstToken].map((interval) => cell(interval).padEnd(19)),
    ...Object.values(absolute).map((milliseconds) => `${seconds(milliseconds)} s`.padEnd(9)),
  ].join(" ");
}

const COMMAND = {
  usage: "compare.ts",
  about: "Compares scheduling policies by simulation on recorded generations.",
  options: {
    seeds: { value: "N", help: "runs of each cell (default 10)" },
    count: { value: "N", help: "requests in a run (default 300)" },
    only: { value: "TEXT", help: 'cells whose name has it, for example "scarce bursty"' },
    json: { help: "print one JSON document" },
  },
  operands: [0, 0],
} as const satisfies Command<string>;

await runCommand(COMMAND, async (given) => {
  const { default: recording } = await import(RECORDING.href, { with: { type: "json" } });
  const traces = (recording as Recording).traces.map(restore);
  const seeds = given.integer("seeds", 1, 1000) ?? 10;
  const count = given.integer("count", 1, 100_000) ?? 300;
  const rows: Row[] = [];
  const heads = ["mean latency / fcfs", "p99 latency / fcfs", "first token / fcfs"];
  const means = ["mean", "p99", "first", "pause"].map((head) => head.padEnd(9));
  console.error(
    ["".padEnd(47), ...heads.map((head) => head.padEnd(19)), ...means].join(" "),
  );
  for (const [memory, kvBlocks] of Object.entries(MEMORY)) {
    for (const [arrivals, shape] of Object.entries(ARRIVALS)) {
      for (const [limits, maxTokens] of Object.entries(LIMITS)) {
        for (const load of LOADS) {
          const cell = { memory, arrivals, limits, load };
          if (!Object.values(cell).join(" ").includes(given.text("only") ?? "")) continue;
          const demand = { count, load, shape, maxTokens };
          const found = toRows(await compareCell(traces, demand, kvBlocks, seeds), cell);
          for (const row of found) console.error(show(row));
          rows.push(...found);
        }
      }
    }
  }
  if (given.flag("json")) console.log(JSON.stringify({ results: rows }, null, 2));
});
