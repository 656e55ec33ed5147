/**
 * What a sequence's steps cost, the C of dtau/dC (arXiv 2603.03310): arithmetic, memory traffic, time.
 * A step's whole cost is shared out over its batch, so that the shares add up to what was spent.
 */

export interface Cost {
  /** Floating-point operations, a multiply-add counted as two. */
  readonly flops: number;
  /** Bytes of weights, read once a step for the whole batch. */
  readonly weightBytes: number;
  /** Bytes of KV cache that attention read. */
  readonly kvBytes: number;
  /** Inside the forward pass. */
  readonly seconds: number;
}

export const NO_COST: Cost = { flops: 0, weightBytes: 0, kvBytes: 0, seconds: 0 };

/** The sizes of a transformer that its arithmetic depends on. */
export interface TransformerShape {
  readonly layers: number;
  readonly hiddenSize: number;
  readonly feedForwardSize: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly vocabularySize: number;
}

/** One sequence's part of a step. */
export interface StepWork {
  /** New tokens, and the position of the first. */
  readonly tokens: number;
  readonly position: number;
  /** Output rows. */
  readonly rows: number;
  /** Multiply-adds of its attention, the scan of a sketch included; where left out, of a dense one. */
  readonly attentionMacs?: number;
  readonly kvBytes: number;
}

/**
 * Operations of a sequence's part of a step: 2 for each weight of a token's matrices (query, key,
 * value, output, and the three of the gated feed-forward), 2 for each multiply-add of attention, of
 * which dense attention has 2 for each head dimension of each position (QK and PV), and 2 for each
 * weight of the output layer for each row.
 */
export function flopsOf(shape: TransformerShape, work: StepWork): number {
  const { layers, hiddenSize, feedForwardSize, heads, kvHeads, headSize, vocabularySize } = shape;
  const attentionWeights = 2 * hiddenSize * headSize * (heads + kvHeads);
  const weights = attentionWeights + 3 * hiddenSize * feedForwardSize;
  // Token i sees position + i + 1 positions.
  const positions = work.tokens * work.position + work.tokens * (work.tokens + 1) / 2;
  const { attentionMacs = 2 * layers * heads * headSize * positions } = work;
  return 2 * layers * weights * work.tokens + 2 * attentionMacs +
    2 * hiddenSize * vocabularySize * work.rows;
}

/**
 * Shares a step out: operations and KV bytes to whom they belong, weights by tokens, time by
 * operations.
 *
 * @returns A cost for each part of the step, in order.
 */
export function shareCost(
  shape: TransformerShape,
  step: readonly StepWork[],
  spent: { readonly weightBytes: number; readonly seconds: number },
): Cost[] {
  const flops = step.map((work) => flopsOf(shape, work));
  const allFlops = flops.reduce((sum, x) => sum + x, 0);
  const allTokens = step.reduce((sum, { tokens }) => sum + tokens, 0);
  return step.map(({ tokens, kvBytes }, i) => ({
    flops: flops[i] as number,
    weightBytes: spent.weightBytes * tokens / allTokens,
    kvBytes,
    seconds: spent.seconds * (flops[i] as number) / allFlops,
  }));
}

export function addCost(a: Cost, b: Cost): Cost {
  return {
    flops: a.flops + b.flops,
    weightBytes: a.weightBytes + b.weightBytes,
    kvBytes: a.kvBytes + b.kvBytes,
    seconds: a.seconds + b.seconds,
  };
}

/** dtau/dC for each meaning of C: nats of entropy removed by each unit spent; 0 before any. */
export interface Efficiency {
  readonly natsPerSecond: number;
  /** For each 10^9 operations. */
  readonly natsPerGigaflop: number;
  /** For each 10^9 bytes, weights and KV. */
  readonly natsPerGigabyte: number;
}

/** @param tau Entropic time in nats. */
export function efficiency(tau: number, cost: Cost): Efficiency {
  const per = (amount: number) => amount > 0 ? tau / amount : 0;
  return {
    natsPerSecond: per(cost.seconds),
    natsPerGigaflop: per(cost.flops / 1e9),
    natsPerGigabyte: per((cost.weightBytes + cost.kvBytes) / 1e9),
  };
}
