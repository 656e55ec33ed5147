/**
 * What pruned attention changes and what it saves, on real text: KL from dense attention, perplexity
 * and top-1 agreement over the last tokens of contexts of several lengths, teacher-forced.
 */
import type { AttentionPlan } from "../../core/engine/backend.ts";
import { compareWithDense } from "../../core/host/calibrate/compare.ts";
import {
  type Comparison,
  type Divergence,
  divergenceOf,
} from "../../core/host/calibrate/divergence.ts";
import { bootstrap, type Interval, sumOf } from "./bootstrap.ts";
import { openSubject } from "./subject.ts";
import { mobyDick, speeches, typescriptScanner } from "./texts.ts";

const TEXTS = { prose: mobyDick, speech: speeches, code: typescriptScanner };
const LENGTHS = [1024, 2048, 4096, 8192];
const POSITIONS = 128;

const mass = (mass: number, minBlocks: number): AttentionPlan => ({
  kind: "mass",
  mass,
  minBlocks,
});
const PLANS: readonly AttentionPlan[] = [
  ...[0.8, 0.85, 0.9, 0.95, 0.98].map((p) => mass(p, 24)),
  ...[8, 16, 32].map((floor) => mass(0.9, floor)),
  ...[0.0005, 0.001, 0.002, 0.004].map((threshold): AttentionPlan => ({
    kind: "threshold",
    threshold,
    minBlocks: 24,
  })),
];
/** The context's, and each contender's own for the scored tokens. */
const KV_BLOCKS = Math.max(...LENGTHS) / 16 + (PLANS.length + 1) * POSITIONS / 16;

export interface DivergenceResult extends Omit<Divergence, "kl" | "pplRatio"> {
  readonly name: "divergence";
  /** `all` pools the texts. */
  readonly text: string;
  readonly context: number;
  readonly plan: AttentionPlan;
  /** Of paired positions, 95 %. */
  readonly kl: Interval;
  readonly pplRatio: Interval;
}

/** @param spec As `deno task model` takes it. */
export async function evaluateDivergence(spec: string): Promise<DivergenceResult[]> {
  await using subject = await openSubject(spec, KV_BLOCKS);
  const { backend, tokenizer } = subject;
  /** Of each length and plan: one comparison a text. */
  const pooled = LENGTHS.map(() => PLANS.map((): Comparison[] => []));
  const results: DivergenceResult[] = [];
  for (const [text, read] of Object.entries(TEXTS)) {
    const tokens = tokenizer.encode(await read());
    const found = await compareWithDense(backend, tokens, LENGTHS, POSITIONS, PLANS);
    for (const [i, comparisons] of found.entries()) {
      for (const [j, comparison] of comparisons.entries()) {
        pooled[i]?.[j]?.push(comparison);
        results.push(summarize(text, i, j, [comparison]));
      }
    }
  }
  for (const [i, plans] of pooled.entries()) {
    for (const [j, comparisons] of plans.entries()) {
      results.push(summarize("all", i, j, comparisons));
    }
  }
  return results;
}

function summarize(
  text: string,
  length: number,
  index: number,
  comparisons: readonly Comparison[],
): DivergenceResult {
  const context = LENGTHS[length] as number;
  const plan = PLANS[index] as AttentionPlan;
  const divergences = comparisons.flatMap(({ kl }) => kl);
  const losses = comparisons.flatMap(({ loss, denseLoss }) =>
    loss.map((value, i) => value - (denseLoss[i] as number))
  );
  const meanOf = (values: readonly number[], runs: readonly number[]) =>
    sumOf(values, runs) / runs.length;
  const result: DivergenceResult = {
    ...divergenceOf(comparisons),
    name: "divergence",
    text,
    context,
    plan,
    kl: bootstrap(divergences.length, (runs) => meanOf(divergences, runs)),
    pplRatio: bootstrap(losses.length, (runs) => Math.exp(meanOf(losses, runs))),
  };
  console.error(describe(result));
  return result;
}

function describe(result: DivergenceResult): string {
  const { text, context, plan, kl, pplRatio, top1, bytesShare, macsShare, massDropped } = result;
  const { kind, ...numbers } = plan;
  const interval = ({ value, low, high }: Interval) =>
    `${value.toFixed(4)} [${low.toFixed(4)}, ${high.toFixed(4)}]`;
  return `${text.padEnd(6)} ${context} ${kind} ${Object.values(numbers).join("/").padEnd(9)}: ` +
    `KL ${interval(kl)}, perplexity x${interval(pplRatio)}, top-1 ${top1.toFixed(3)}, ` +
    `bytes ${bytesShare.toFixed(3)}, macs ${macsShare.toFixed(3)}, ` +
    `dropped ${massDropped.toFixed(3)}`;
}
