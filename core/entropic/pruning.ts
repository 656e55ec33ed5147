/**
 * The meso scale (arXiv 2603.03310, section 4.2): from the entropy of the last distribution to how much
 * of the context the next token's attention reads. Blocks are chosen by their share of the attention,
 * for each KV head and step, so the active set shrinks as the attention's own entropy falls.
 */

/** How a sequence's attention is pruned. */
export interface AttentionControl {
  /**
   * `off`: dense. `mass`: the smallest set of blocks that holds a given share of the attention
   * (arXiv 2502.02770). `paper`: every block whose share reaches a threshold that rises as H falls.
   */
  readonly policy: "off" | "mass" | "paper";
  /** `mass`: the share, in (0, 1]; where left out, what calibration chose for the context's length. */
  readonly mass?: number;
  /** Blocks that are read at least. */
  readonly minBlocks?: number;
  /** `mass`: added to the share for each nat that the last entropy lies above its mean; 0 by default. */
  readonly gain?: number;
  /** `paper`: theta at H = 0, in [0, 1]. */
  readonly threshold?: number;
}
