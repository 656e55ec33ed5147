/** How far rows of logits lie from the dense ones: divergence, loss and agreement, and what they cost. */
import { addAttention, NO_TOTALS } from "../../engine/attention/attention_totals.ts";
import type { AttentionStats } from "../../engine/backend.ts";
import type { AttentionTotals } from "../../engine/engine.ts";
import { divergence } from "../../entropic/divergence.ts";

/** One contender over the positions of one text; entry i of each list is that of position i. */
export interface Comparison {
  /** KL(dense || contender) of the next token's distribution, in nats. */
  readonly kl: readonly number[];
  /** Negative log-probability of the text's next token, and the dense one's. */
  readonly loss: readonly number[];
  readonly denseLoss: readonly number[];
  /** Whether both find the same token likeliest. */
  readonly agrees: readonly boolean[];
  /** Summed over the positions; `massDropped` is their mean. */
  readonly attention: AttentionStats;
}

/** Its figures over all positions. */
export interface Divergence {
  readonly kl: number;
  /** Perplexity over the dense one. */
  readonly pplRatio: number;
  readonly top1: number;
  readonly bytesShare: number;
  readonly macsShare: number;
  readonly massDropped: number;
}

/** A comparison that grows position by position. */
export class Tally implements Comparison {
  readonly kl: number[] = [];
  readonly loss: number[] = [];
  readonly denseLoss: number[] = [];
  readonly agrees: boolean[] = [];
  attention: AttentionTotals = NO_TOTALS;

  /**
   * @param dense Log-probabilities of the next token, shape [vocabulary].
   * @param own The contender's.
   * @param next The token that the text goes on with.
   */
  add(dense: Float64Array, own: Float64Array, next: number, stats: AttentionStats): void {
    this.kl.push(divergence(dense, own, 0, 0));
    this.loss.push(-(own[next] ?? NaN));
    this.denseLoss.push(-(dense[next] ?? NaN));
    this.agrees.push(likeliest(dense) === likeliest(own));
    this.attention = addAttention(this.attention, stats, 1, true);
  }
}

/** Of several comparisons, as if they were one. */
export function divergenceOf(comparisons: readonly Comparison[]): Divergence {
  const mean = (of: (one: Comparison) => readonly number[]) => {
    const values = comparisons.flatMap(of);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  const total = (of: (stats: AttentionStats) => number) =>
    comparisons.reduce((sum, { attention }) => sum + of(attention), 0);
  return {
    kl: mean(({ kl }) => kl),
    pplRatio: Math.exp(mean(({ loss }) => loss) - mean(({ denseLoss }) => denseLoss)),
    top1: mean(({ agrees }) => agrees.map(Number)),
    bytesShare: total(({ bytesRead }) => bytesRead) / total(({ bytesTotal }) => bytesTotal),
    macsShare: total(({ macs }) => macs) / total(({ macsTotal }) => macsTotal),
    massDropped: total(({ massDropped }) => massDropped) / comparisons.length,
  };
}

export function logProbabilities(logits: Float32Array, logZ: number): Float64Array {
  return Float64Array.from(logits, (logit) => logit - logZ);
}

function likeliest(row: Float64Array): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if ((row[i] as number) > (row[best] as number)) best = i;
  return best;
}
