/**
 * The meso scale (arXiv 2603.03310, section 4.2): from the entropy of the last distribution to how much
 * of the context the next token's attention reads. Blocks are chosen by their share of the attention,
 * for each KV head and step, so the active set shrinks as the attention's own entropy falls.
 */

export const ATTENTION_POLICIES = ["off", "mass", "paper"] as const;
export type AttentionPolicy = typeof ATTENTION_POLICIES[number];

/** How a sequence's attention is pruned. */
export interface AttentionControl {
  /**
   * `off`: dense. `mass`: the smallest set of blocks that holds a given share of the attention
   * (arXiv 2502.02770). `paper`: every block whose share reaches a threshold that rises as H falls.
   */
  readonly policy: AttentionPolicy;
  /** `mass`: the share, in (0, 1]; where left out, what calibration chose for the context's length. */
  readonly mass?: number;
  /** Blocks that are read at least. */
  readonly minBlocks?: number;
  /** `mass`: added to the share for each nat that the last entropy lies above its mean; 0 by default. */
  readonly gain?: number;
  /** `paper`: theta at H = 0, in [0, 1]. */
  readonly threshold?: number;
}

/** The share of the attention to read by context length: the last entry counts that is not beyond it. */
export type MassByLength = readonly {
  /** Context in tokens from which on it counts; ascending. */
  readonly length: number;
  readonly mass: number;
}[];

/** What a step may leave out; the shape of the backend's `AttentionPlan`. */
export type AttentionBudget =
  | { readonly kind: "dense" }
  | { readonly kind: "mass"; readonly mass: number; readonly minBlocks: number }
  | { readonly kind: "threshold"; readonly threshold: number; readonly minBlocks: number };

/**
 * Contexts of fewer tokens stay dense. Below it the `minBlocks` of the default are more than a third of
 * the context, the scan has to be paid as well, and attention is a small part of a step.
 */
export const DENSE_BELOW = 1024;

/** Lengths at which the divergence of one mass differs enough to choose another. */
export const LENGTHS: readonly number[] = [1024, 2048, 4096, 8192];

/** Of the measured table: a floor of blocks buys more than a higher mass. */
export const MIN_BLOCKS = 24;

/** Where neither request nor calibration says: within .01 nats on SmolLM2-135M at 4K and 6K. */
export const DEFAULT_MASS = 0.95;

/** `paper`: theta at H = 0. A context of 4K tokens loses at most a quarter of its attention then. */
export const DEFAULT_THRESHOLD = 0.001;

/** What nobody can go below, neither a request nor a controller. */
export interface AttentionFloor {
  readonly mass: number;
  readonly minBlocks: number;
}

/**
 * With less than half of the attention read, what is left out can outweigh it: the bound on the output's
 * error, 2 (1 - mass) max|v|, is as large as the output. Four blocks: the first, the current and the one
 * before it are always read, so that one is the scan's to choose.
 */
export const ATTENTION_FLOOR: AttentionFloor = { mass: 0.5, minBlocks: 4 };

/** What is known when a token is about to attend. */
export interface Attending {
  /** Its position plus one, in tokens, and the KV blocks that these take. */
  readonly context: number;
  readonly blocks: number;
  /** H of the distribution that the token was drawn from, and its mean so far; nats. */
  readonly entropy: number;
  readonly meanEntropy: number;
  /** log of the vocabulary's size: the largest H there is. */
  readonly maxEntropy: number;
}

/** The mass that a table has for a context; `DEFAULT_MASS` where it has none. */
export function massFor(table: MassByLength, context: number): number {
  return (table.findLast(({ length }) => length <= context) ?? table[0])?.mass ?? DEFAULT_MASS;
}

/** Index in `LENGTHS` of the lengths that a context belongs to. */
export function lengthIndex(context: number): number {
  return Math.max(0, LENGTHS.findLastIndex((from) => from <= context));
}

/**
 * What the next token's attention may leave out.
 *
 * `mass`: p_t = clip(p + gain (H_{t-1} - mean H), floor, 1). The gain is there to be measured, and 0:
 * at equal bytes every gain within +-.5 was as good or worse, since the last entropy hardly tells what
 * the next token needs. What shrinks the active set is that p is a share of the attention itself.
 *
 * `paper`: B_t = {b | I_b >= theta_t} with I_b the block's share of the attention and
 * theta_t = theta_0 (1 - H_{t-1} / log V): confident steps read fewer blocks, a uniform guess reads all.
 * A dropped block has less than theta_t, so theta_t <= (1 - floor) / blocks keeps the floor of mass.
 *
 * @param held What the engine holds for the length, for controls that name no mass or threshold.
 */
export function attentionBudget(
  control: AttentionControl,
  at: Attending,
  held: { readonly mass: number; readonly threshold: number },
  { denseBelow = DENSE_BELOW, floor = ATTENTION_FLOOR } = {},
): AttentionBudget {
  const minBlocks = Math.max(floor.minBlocks, control.minBlocks ?? MIN_BLOCKS);
  if (control.policy === "off" || at.context < denseBelow || at.blocks <= minBlocks) {
    return { kind: "dense" };
  }
  if (control.policy === "mass") {
    const { mass = held.mass, gain = 0 } = control;
    const wanted = mass + gain * (at.entropy - at.meanEntropy);
    return { kind: "mass", mass: clip(wanted, floor.mass, 1), minBlocks };
  }
  const { threshold = held.threshold } = control;
  const certainty = clip(1 - at.entropy / at.maxEntropy, 0, 1);
  const most = (1 - floor.mass) / at.blocks;
  return { kind: "threshold", threshold: clip(threshold * certainty, 0, most), minBlocks };
}

function clip(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
