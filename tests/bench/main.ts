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
import { type Contender, MissingPeerError, type Workload } from "./contender.ts";
import { EntropicTime } from "./ours.ts";
import { LlamaCpp, runLlamaTool } from "./peers/llama_cpp.ts";
import { NodeLlamaCpp } from "./peers/node_llama_cpp.ts";
import { WllamaPeer } from "./peers/wllama.ts";
import { DEFAULT_ROWS, type Row, ROWS } from "./rows.ts";
import { summarise, type Summary } from "./statistics.ts";

const COMMAND = {
  usage: "bench [NAME…]",
  about: `Measures this engine beside its peers, in alternating runs.
Rows: ${ROWS.map(({ name }) => name).join(", ")}
Without names: ${DEFAULT_ROWS.join(", ")}`,
  options: {
    model: { value: "M", help: "a model as `deno task model` takes it (default SmolLM2)" },
    runs: { value: "N", help: "runs of each side (default 5)" },
    json: { help: "print one JSON document" },
  },
  operands: [0, ROWS.length],
} as const satisfies Command<string>;

/** A row of the result. A ratio is `value / peer_value`; peers that are missing leave nulls. */
interface Result {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly peer: string | null;
  readonly peer_value: number | null;
  readonly ratio: number | null;
  readonly spread: number;
  readonly peer_spread: number | null;
  readonly runs: number;
}

const PEERS: Readonly<Record<string, () => Contender>> = {
  "llama.cpp": () => new LlamaCpp(),
  "node-llama-cpp": () => new NodeLlamaCpp(),
  "wllama 2.4.0": () => new WllamaPeer("2.4.0"),
  "wllama newest": () => new WllamaPeer("newest"),
};

/** Opens those of the named peers that are installed; says how to get the others. */
function openPeers(names: readonly string[]): Contender[] {
  return names.flatMap((name) => {
    try {
      return [PEERS[name]?.() ?? []].flat();
    } catch (error) {
      if (!(error instanceof MissingPeerError)) throw error;
      console.error(error.message);
      return [];
    }
  });
}

/** Runs every side of a row in turn, `runs` times after one that does not count. */
async function measureRow(row: Row, model: string, runs: number): Promise<Result> {
  const workload: Workload = { ...row.workload, model };
  const peers = openPeers(row.peers);
  const sides = [new EntropicTime(), ...peers];
  const values = sides.map((): number[] => []);
  try {
    for (let run = 0; run <= runs; run++) {
      for (const [at, side] of sides.entries()) {
        const value = await side.measure(workload);
        if (run > 0) values[at]?.push(value);
      }
    }
  } finally {
    for (const side of sides) await side.dispose();
  }
  const [own, ...others] = values.map(summarise);
  if (own === undefined) throw new Error(`Cannot measure ${row.name}: nothing ran`);
  return result(row, runs, own, fastest(row, peers, others));
}

interface Best extends Summary {
  readonly name: string;
}

/** The best of the peers: most tokens a second, or fewest seconds. */
function fastest(row: Row, peers: readonly Contender[], summaries: Summary[]): Best | undefined {
  const sign = row.unit === "s" ? 1 : -1;
  return summaries.map((summary, at) => ({ ...summary, name: peers[at]?.name ?? "" }))
    .sort((a, b) => sign * (a.median - b.median))[0];
}

function result(row: Row, runs: number, own: Summary, peer: Best | undefined): Result {
  return {
    name: row.name,
    value: own.median,
    unit: row.unit,
    peer: peer?.name ?? null,
    peer_value: peer?.median ?? null,
    ratio: peer === undefined ? null : own.median / peer.median,
    spread: own.spread,
    peer_spread: peer?.spread ?? null,
    runs,
  };
}

function printable({ name, value, unit, peer, peer_value, ratio, spread }: Result): string {
  const own = `${value.toPrecision(3)} ${unit} (spread ${(100 * spread).toFixed(0)} %)`;
  const other = peer === null ? "no peer" : `${peer} ${peer_value?.toPrecision(3)} ${unit}`;
  return [name.padEnd(22), own.padEnd(30), other.padEnd(34), ratio?.toFixed(2) ?? ""].join(" ");
}

/** The model that a row wants: the given one, or a conversion of it in the scratch folder. */
async function modelFor(row: Row, model: string, scratch: string): Promise<string> {
  if (row.requantise === undefined) return model;
  const target = join(scratch, `${row.requantise}.gguf`);
  await runLlamaTool("llama-quantize", ["--allow-requantize", model, target, row.requantise]);
  return target;
}

await runCommand(COMMAND, async (given) => {
  const names = given.operands.length > 0 ? given.operands : DEFAULT_ROWS;
  const rows = names.map((name) => {
    const row = ROWS.find((row) => row.name === name);
    if (row !== undefined) return row;
    throw new RangeError(
      `Cannot run "${name}": rows are ${ROWS.map(({ name }) => name).join(", ")}`,
    );
  });
  const spec = given.text("model") ?? REAL_MODEL ?? "smollm2";
  const { paths: [model = spec] } = await resolveModel(spec);
  const runs = given.integer("runs", 1, 1000) ?? 5;
  const scratch = mkdtempSync(join(tmpdir(), "entropic-bench-"));
  const results: Result[] = [];
  try {
    for (const row of rows) {
      const found = await measureRow(row, await modelFor(row, model, scratch), runs);
      console.error(printable(found));
      results.push(found);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  if (given.flag("json")) console.log(JSON.stringify({ results }, null, 2));
});
