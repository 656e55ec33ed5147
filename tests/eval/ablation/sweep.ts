/**
 * Pruned attention alone, without an engine: what a decoding step takes and what it reads at several
 * context lengths, masses and batch sizes, beside the divergence from dense attention:
 * `deno run -A --no-lock tests/eval/ablation/sweep.ts [--json]`
 */
import process from "node:process";
import {
  type AttentionPlan,
  type Backend,
  BLOCK_SIZE,
  DENSE,
  type SequenceInput,
} from "../../../core/engine/backend.ts";
import { compareWithDense } from "../../../core/host/calibrate/compare.ts";
import { divergenceOf } from "../../../core/host/calibrate/divergence.ts";
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import { type Interval, pairedRatio } from "../bootstrap.ts";
import { openSubject } from "../subject.ts";
import { mobyDick } from "../texts.ts";
import { mean } from "./figures.ts";
import { interval } from "./show.ts";
import { storePrefix, withPrefix } from "./stored_prefix.ts";

/** Tokens; the last leaves room in the model's context for the steps that are timed. */
const LENGTHS = [1024, 2048, 4096, 8128];
const MASSES = [0.8, 0.85, 0.9, 0.95, 0.98];
const BATCHES = [1, 8];
/** Positions before each length on which quality is measured. */
const SCORED = 128;
/** Steps in a round of a plan. */
const STEPS = 4;

/** Keys as the JSON has them. */
export interface SweepRow {
  readonly length: number;
  readonly batch: number;
  /** 1 is dense. */
  readonly mass: number;
  readonly min_blocks: number;
  /** Processor time of a decoding step, and over that of dense attention. */
  readonly milliseconds: number;
  readonly time: Interval;
  /** Read by attention, over what dense attention reads. */
  readonly bytes: number;
  readonly macs: number;
  readonly mass_dropped: number;
  readonly kl: number;
  readonly ppl_ratio: number;
  readonly top1: number;
}

const COMMAND = {
  usage: "sweep.ts",
  about: "Measures pruned attention by context length, mass and batch size.",
  options: {
    "min-blocks": { value: "N", help: "blocks that attention reads at least (default 24)" },
    rounds: { value: "N", help: "timed rounds of each plan (default 8)" },
    json: { help: "print one JSON document" },
  },
  operands: [0, 0],
} as const satisfies Command<string>;

/** Milliseconds of processor time for a step of a round of `STEPS`, every sequence in its own blocks. */
async function timeRound(
  backend: Backend,
  text: Uint32Array,
  length: number,
  batch: number,
  attention: AttentionPlan,
): Promise<number> {
  const blocks = blocksFor(length);
  const start = process.cpuUsage();
  for (let position = length; position < length + STEPS; position++) {
    await backend.forward(Array.from({ length: batch }, (_, index): SequenceInput => ({
      tokens: text.subarray(position, position + 1),
      position,
      blockTable: Array.from({ length: blocks }, (_, block) => index * blocks + block),
      attention,
      output: "last",
    })));
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000 / STEPS;
}

/** Of a sequence with its timed steps. */
function blocksFor(length: number): number {
  return Math.ceil((length + STEPS) / BLOCK_SIZE);
}

async function sweepLength(
  backend: Backend,
  text: Uint32Array,
  length: number,
  minBlocks: number,
  rounds: number,
): Promise<SweepRow[]> {
  const plans = [
    DENSE,
    ...MASSES.map((mass): AttentionPlan => ({ kind: "mass", mass, minBlocks })),
  ];
  const prefix = await storePrefix(backend, text.subarray(0, length));
  const [comparisons = []] = await compareWithDense(
    withPrefix(backend, prefix),
    text,
    [length],
    SCORED,
    plans,
  );
  const rows: SweepRow[] = [];
  for (const batch of BATCHES) {
    for (let index = 0; index < batch; index++) {
      const first = index * blocksFor(length);
      const blocks = Array.from({ length: length / BLOCK_SIZE }, (_, block) => first + block);
      await backend.writeBlocks(blocks, prefix.content);
    }
    const times = plans.map((): number[] => []);
    for (let round = 0; round <= rounds; round++) {
      for (const [i, plan] of plans.entries()) {
        const time = await timeRound(backend, text, length, batch, plan);
        if (round > 0) times[i]?.push(time);
      }
    }
    for (const [i, plan] of plans.entries()) {
      const found = divergenceOf([comparisons[i]].flatMap((one) => one ?? []));
      rows.push({
        length,
        batch,
        mass: plan.kind === "mass" ? plan.mass : 1,
        min_blocks: minBlocks,
        milliseconds: mean(times[i] ?? []),
        time: pairedRatio(times[i] ?? [], times[0] ?? []),
        bytes: found.bytesShare,
        macs: found.macsShare,
        mass_dropped: found.massDropped,
        kl: found.kl,
        ppl_ratio: found.pplRatio,
        top1: found.top1,
      });
    }
  }
  return rows;
}

function show({ length, batch, mass, milliseconds, time, bytes, macs, kl, ppl_ratio }: SweepRow) {
  return `${length} x${batch} mass ${mass.toFixed(2)}: ${milliseconds.toFixed(1)} ms, ` +
    `time ${interval(time)}, bytes ${bytes.toFixed(3)}, macs ${macs.toFixed(3)}, ` +
    `KL ${kl.toFixed(4)}, perplexity x${ppl_ratio.toFixed(4)}`;
}

if (import.meta.main) {
  await runCommand(COMMAND, async (given) => {
    const minBlocks = given.integer("min-blocks", 0, 1e6) ?? 24;
    const rounds = given.integer("rounds", 1, 1000) ?? 8;
    const kvBlocks = Math.max(...BATCHES) * blocksFor(Math.max(...LENGTHS));
    await using subject = await openSubject("smollm2", kvBlocks);
    const { backend, tokenizer } = subject;
    const text = tokenizer.encode(await mobyDick());
    const results: SweepRow[] = [];
    for (const length of LENGTHS) {
      const rows = await sweepLength(backend, text, length, minBlocks, rounds);
      for (const row of rows) console.error(show(row));
      results.push(...rows);
    }
    if (given.flag("json")) console.log(JSON.stringify({ results }, null, 2));
  });
}
