/**
 * The Backend contract: everything the engine knows of the machine that computes. WASM, WebGPU, the
 * scripted fake of the tests and, later, a remote engine implement it. A backend sees token ids,
 * positions and block tables; sequences, policies and text stay on the engine's side.
 */
import type { ModelConfig } from "../model/config.ts";

/** Tokens in a KV block. */
export const BLOCK_SIZE = 16;

/**
 * Which of the KV blocks before a token its attention reads, in each layer and KV head apart. Pruned
 * plans need a `KeySketch`. The first, the current and the block before it are always read, and at
 * least `minBlocks` in all; a sequence with no more blocks than that attends densely, bit for bit.
 */
export type AttentionPlan =
  | { readonly kind: "dense" }
  | {
    /** The smallest set of blocks that holds this much of the attention (arXiv 2502.02770). */
    readonly kind: "mass";
    /** Share of the attention, in (0, 1]. */
    readonly mass: number;
    readonly minBlocks: number;
  }
  | {
    /** Every block that holds at least this much of the attention (arXiv 2603.03310). */
    readonly kind: "threshold";
    /** Share of the attention, in [0, 1]. */
    readonly threshold: number;
    readonly minBlocks: number;
  };

export const DENSE: AttentionPlan = { kind: "dense" };

/** One sequence's part of a step. */
export interface SequenceInput {
  /** New token ids, shape [n], n >= 1. */
  readonly tokens: ArrayLike<number>;
  /** Position of `tokens[0]` in its sequence. KV of all earlier positions must be resident. */
  readonly position: number;
  /** Physical block of each 16 positions; covers `position + n` positions. */
  readonly blockTable: ArrayLike<number>;
  readonly attention: AttentionPlan;
  /** Rows for which logits are wanted: none, that of the last new token, or one a new token. */
  readonly output: "none" | "last" | "all";
  /** How the step itself draws a token from the last of these rows, to be its `LogitStats.drawn`. */
  readonly draw?: Draw | undefined;
}

/**
 * One sequence's part of a step that begins before the step before it has been read. It has one new
 * token, which attends densely and whose row is an output row.
 */
export interface FollowingInput {
  /** The output row of the step before from which that step draws the new token. */
  readonly row: number;
  /** Of the new token, as in `SequenceInput`. */
  readonly position: number;
  readonly blockTable: ArrayLike<number>;
  readonly draw?: Draw | undefined;
}

/** How uncertain a distribution is. */
export interface Uncertainty {
  /** Shannon entropy in nats. */
  readonly entropy: number;
  /** Variance of -log p under p, in nats squared. */
  readonly varentropy: number;
}

/** How a token is drawn from a row. The stages, in this order; each keeps the first ranks. */
export interface Draw {
  /** The k most likely, ties by id; 0 keeps all. */
  readonly topK: number;
  /** The fewest whose mass at temperature 1 reaches this share of all that are left; 1 keeps all. */
  readonly topP: number;
  /** Those at least this much as likely as the best, at temperature 1; 0 keeps all. */
  readonly minP: number;
  /** 0 takes the best. */
  readonly temperature: number;
  /** Random, in [0, 1): the share of the mass that, in rank order, lies before the token. */
  readonly u: number;
}

/** Logits of some tokens of a row, each token once. */
export interface TokenLogits {
  /** Shape [n]. */
  readonly ids: Uint32Array;
  /** Shape [n]. */
  readonly logits: Float32Array;
}

/** A draw from a row that is not as the model gave it. */
export interface OverriddenDraw extends Draw {
  /** They stand in for the model's own. */
  readonly overrides: TokenLogits;
}

/** A token out of a row, and its logit there. */
export interface DrawnToken {
  readonly token: number;
  readonly logit: number;
}

/** Exact statistics of one row of logits, over the whole vocabulary, at temperature 1. */
export interface LogitStats extends Uncertainty {
  readonly max: number;
  /** log of the sum of exp(logit). Not finite when the row is unusable (a NaN, +Inf, all -Inf). */
  readonly logZ: number;
  /** Sum of the probabilities of `ModelConfig.endTokens`. */
  readonly endProbability: number;
  /** The `BackendLimits.topK` most likely ids, by logit descending, ties by id ascending. */
  readonly topIds: Uint32Array;
  /** Logits of `topIds`. */
  readonly topLogits: Float32Array;
  /**
   * The token that `SequenceInput.draw` asked for, the same that `Backend.draw` would give. Missing where
   * a backend without `follow` leaves draws to that.
   */
  readonly drawn?: DrawnToken | undefined;
}

/**
 * What the attention of one sequence cost in a step, summed over new tokens, layers and KV heads.
 * Blocks that no token had to attend to are in none of the figures.
 */
export interface AttentionStats {
  readonly blocksRead: number;
  /** Blocks that dense attention would have read. */
  readonly blocksTotal: number;
  /** Bytes of keys, values and sketches. */
  readonly bytesRead: number;
  /** Bytes that dense attention would have read. */
  readonly bytesTotal: number;
  /** Multiply-adds of scan, QK and PV, over all query heads. */
  readonly macs: number;
  /** Multiply-adds that dense attention would have taken. */
  readonly macsTotal: number;
  /** Mean share of the attention that was left out, by the scan's estimate; 0 where dense. */
  readonly massDropped: number;
}

export const NO_ATTENTION: AttentionStats = {
  blocksRead: 0,
  blocksTotal: 0,
  bytesRead: 0,
  bytesTotal: 0,
  macs: 0,
  macsTotal: 0,
  massDropped: 0,
};

export interface ForwardResult {
  /** One entry an output row: sequences in batch order, rows in token order. */
  readonly rows: readonly LogitStats[];
  /** One entry a sequence, in batch order. */
  readonly attention: readonly AttentionStats[];
}

export interface BackendLimits {
  /** KV blocks of `BLOCK_SIZE` tokens, all preallocated. */
  readonly kvBlocks: number;
  /** Most new tokens in one `forward`, over all sequences. */
  readonly maxBatchTokens: number;
  /** Most output rows in one `forward`. */
  readonly maxOutputRows: number;
  /** Most positions a sequence may have. */
  readonly contextLength: number;
  /** Length of `LogitStats.topIds`; at most the vocabulary. */
  readonly topK: number;
}

/**
 * Second moments of what attention multiplies, after the rotary embedding, over the tokens of some
 * text. Of each layer and KV head; queries over all heads of its group.
 */
export interface KeyMoments {
  /** Tokens that were gathered. */
  readonly tokens: number;
  /** Mean of k, shape [layers][kvHeads][headSize]. */
  readonly keyMean: Float32Array;
  /** Mean of k k^T, shape [layers][kvHeads][headSize][headSize]. */
  readonly keys: Float32Array;
  /** Mean of q q^T, of the same shape. */
  readonly queries: Float32Array;
}

/**
 * Keys of lower rank, in 4 bits, that a backend scans to estimate the attention's mass: the code of a
 * rotated key k is `round(keyMap k - keyOffset)`, clipped to -7 ..= 7, and the score of a rotated query
 * q with it, but for a constant that the softmax does not see, `(queryMap q) . code`.
 */
export interface KeySketch {
  /** Dimensions of a code, a multiple of 8. */
  readonly dimensions: number;
  /** Shape [layers][kvHeads][dimensions][headSize]. */
  readonly keyMap: Float32Array;
  /** Shape [layers][kvHeads][dimensions]. */
  readonly keyOffset: Float32Array;
  /** Shape of `keyMap`; 1/sqrt(headSize) is in it. */
  readonly queryMap: Float32Array;
}

/** What a backend has that can prune its attention. */
export interface Pruning {
  /**
   * Starts gathering moments over all tokens that later steps run, afresh; or ends it.
   *
   * @param stretch Tokens count as if they stood at so many times their position, 1 where left out:
   * moments have to be of positions all over a context as long as those to be pruned.
   * @returns At the end, what was gathered.
   */
  gather(on: boolean, stretch?: number): Promise<KeyMoments | undefined>;
  /**
   * Sets the sketch, or takes it away. All KV content is void afterwards.
   *
   * @throws {RangeError} Its shapes do not fit the model.
   */
  useSketch(sketch: KeySketch | undefined): Promise<void>;
}

/** For logs and `/health`. */
export interface BackendInfo {
  /** `wasm`, `webgpu`, `scripted`. */
  readonly kind: string;
  /** The variant in use, its arithmetic first: for example `int8 relaxed`, or `f32 on` an adapter's name. */
  readonly variant: string;
  readonly threads: number;
  /** Bytes of weights as they lie in the backend's memory. */
  readonly weightBytes: number;
  /** Bytes of the KV cache, sketches included. */
  readonly kvBytes: number;
  /** Whether a `KeySketch` is set, so that pruned plans can run. */
  readonly prunes?: boolean;
}

export interface Backend {
  readonly config: ModelConfig;
  readonly limits: BackendLimits;
  /** Missing where attention is always dense. */
  readonly pruning?: Pruning;
  describe(): BackendInfo;

  /**
   * Runs one step. Writes the KV of every new token, then returns the statistics of the output rows.
   * Sequences of one batch may share blocks that are full and lie before their new tokens. The
   * result for a sequence does not depend on the rest of the batch, bit for bit.
   *
   * @throws {RangeError} A batch beyond `limits`, a token id outside the vocabulary, a block table
   * that is too short or names a block that does not exist, a pruned plan without a sketch. Nothing
   * was computed.
   * @throws {BackendError} The machine failed; `fatal` says whether it has to be rebuilt.
   */
  forward(batch: readonly SequenceInput[], signal?: AbortSignal): Promise<ForwardResult>;

  /**
   * As `forward`, for a step that begins while the latest one, `forward` or `follow`, may still be
   * under way, so that a machine apart need not wait until its results were read and thought about.
   * Steps run in the order in which they were begun, and nothing that is asked for later changes what
   * one reads. Where one fails that others follow, they fail too. From this call on, the rows of the
   * step before can no longer be asked for. Missing where steps do not overlap.
   *
   * @throws {RangeError} As `forward`; or the step before draws from no such row. Nothing was computed.
   * @throws {BackendError} As `forward`.
   */
  follow?(batch: readonly FollowingInput[], signal?: AbortSignal): Promise<ForwardResult>;

  /**
   * The full logits of an output row of the latest `forward`, shape [vocabularySize].
   * The array is the caller's to keep and to change.
   */
  logits(row: number): Promise<Float32Array>;

  /** The logits of some tokens in an output row of the latest `forward`, shape of `ids`. */
  logitsOf(row: number, ids: ArrayLike<number>): Promise<Float32Array>;

  /**
   * Draws a token from an output row of the latest `forward`, so that nobody copies a vocabulary to
   * choose from it.
   *
   * @returns `undefined` where every token is at -Infinity.
   */
  draw(row: number, draw: OverriddenDraw): Promise<number | undefined>;

  /**
   * The uncertainty of an output row of the latest `forward` at another temperature, so that nobody
   * copies a vocabulary to steer one.
   *
   * @param temperature Above 0.
   */
  tempered(row: number, temperature: number): Promise<Uncertainty>;

  /** Copies whole KV blocks: `[from, to]` pairs, in order. */
  copyBlocks(pairs: readonly (readonly [from: number, to: number])[]): Promise<void>;

  /** KV content of blocks, to be kept in host memory; opaque, `blocks.length` equal parts. */
  readBlocks(blocks: readonly number[]): Promise<Uint8Array>;

  /** Puts back what `readBlocks` gave, into these blocks, in the same order. */
  writeBlocks(blocks: readonly number[], content: Uint8Array): Promise<void>;

  /** Frees everything. Later calls reject with a `BackendError`. A second call does nothing. */
  dispose(): Promise<void>;
}
