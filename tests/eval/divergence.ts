/**
 * What pruned attention changes and what it saves, on real text: KL from dense attention, perplexity
 * and top-1 agreement over the last tokens of contexts of several lengths, teacher-forced.
 */
import { BLOCK_SIZE } from "../../core/engine/backend.ts";
import { attentionBudget, type AttentionControl, MIN_BLOCKS } from "../../core/entropic/pruning.ts";
import {
  compareWithDense,
  type Contender,
  type LastStep,
} from "../../core/host/calibrate/compare.ts";
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

const CONTROLS: readonly AttentionControl[] = [
  ...[0.7, 0.75, 0.8, 0.85, 0.9, 0.95].map((mass) => ({ policy: "mass", mass } as const)),
  ...[8, 16, 32].map((minBlocks) => ({ policy: "mass", mass: 0.85, minBlocks } as const)),
  ...[0.5, -0.5, 0.02, -0.02].map((gain) => ({ policy: "mass", mass: 0.85, gain } as const)),
  ...[0.0005, 0.001, 0.002].map((threshold) => ({ policy: "paper", threshold } as const)),
];
/** The context's, and each contender's own for the scored tokens. */
const KV_BLOCKS = Math.max(...LENGTHS) / 16 + (CONTROLS.length + 1) * POSITIONS / 16;

export interface DivergenceResult extends Omit<Divergence, "kl" | "pplRatio"> {
  readonly name: "divergence";
  /** `all` pools the texts. */
  readonly text: string;
  readonly context: number;
  readonly control: AttentionControl;
  /** Of paired positions, 95 %. */
  readonly kl: Interval;
  readonly pplRatio: Interval;
}

/** What the engine would do, at every length. */
export function contender(control: AttentionControl, vocabularySize: number): Contender {
  const held = { mass: 1, threshold: 0 }; // every control names its own
  const budget = ({ context, entropy, meanEntropy }: Omit<LastStep, "massDropped">) => {
    const blocks = Math.ceil(context / BLOCK_SIZE);
    const maxEntropy = Math.log(vocabularySize);
    const at = { context, blocks, entropy, meanEntropy, maxEntropy };
    return attentionBudget(control, at, held, { denseBelow: 0 });
  };
  const followsEntropy = control.policy === "paper" || control.gain !== undefined;
  return followsEntropy ? budget : budget({ context: Infinity, entropy: 0, meanEntropy: 0 });
}

/** @param spec As `deno task model` takes it. */
export async function evaluateDivergence(spec: string): Promise<DivergenceResult[]> {
  await using subject = await openSubject(spec, KV_BLOCKS);
  const { backend, tokenizer } = subject;
  /** Of each length and control: one comparison a text. */
  const pooled = LENGTHS.map(() => CONTROLS.map((): Comparison[] => []));
  const contenders = CONTROLS.map((one) => contender(one, tokenizer.vocabularySize));
  const results: DivergenceResult[] = [];
  for (const [text, read] of Object.entries(TEXTS)) {
    const tokens = tokenizer.encode(await read());
    const found = await compareWithDense(backend, tokens, LENGTHS, POSITIONS, contenders);
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
  const control = CONTROLS[index] as AttentionControl;
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
    control,
    kl: bootstrap(divergences.length, (runs) => meanOf(divergences, runs)),
    pplRatio: bootstrap(losses.length, (runs) => Math.exp(meanOf(losses, runs))),
  };
  console.error(describe(result));
  return result;
}

function describe(result: DivergenceResult): string {
  const { text, context, control, kl, pplRatio, top1, bytesShare, macsShare } = result;
  const interval = ({ value, low, high }: Interval) =>
    `${value.toFixed(4)} [${low.toFixed(4)}, ${high.toFixed(4)}]`;
  return `${text.padEnd(6)} ${context} ${nameOf(control).padEnd(24)}: KL ${interval(kl)}, ` +
    `perplexity x${interval(pplRatio)}, top-1 ${top1.toFixed(3)}, ` +
    `bytes ${bytesShare.toFixed(3)}, macs ${macsShare.toFixed(3)}`;
}

function nameOf(
  { policy, mass, threshold, minBlocks = MIN_BLOCKS, gain }: AttentionControl,
): string {
  return `${policy} ${mass ?? threshold}/${minBlocks}${gain === undefined ? "" : ` gain ${gain}`}`;
}
