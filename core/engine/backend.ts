/**
 * The Backend contract: everything the engine knows of the machine that computes. WASM, WebGPU, the
 * scripted fake of the tests and, later, a remote engine implement it. A backend sees token ids,
 * positions and block tables; sequences, policies and text stay on the engine's side.
 */
import type { ModelConfig } from "../model/config.ts";

/** Tokens in a KV block. */
export const BLOCK_SIZE = 16;

/** Which of the KV blocks before a token its attention reads. */
export type AttentionPlan =
  | { readonly kind: "dense" }
  | {
    readonly kind: "mass";
    /** Attention mass to cover per KV head, in (0, 1]. */
    readonly mass: number;
    /** Blocks that are read whatever their mass. */
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
}

/** Exact statistics of one row of logits, over the whole vocabulary, at temperature 1. */
export interface LogitStats {
  readonly max: number;
  /** log of the sum of exp(logit). Not finite when the row is unusable (a NaN, +Inf, all -Inf). */
  readonly logZ: number;
  /** Shannon entropy in nats. */
  readonly entropy: number;
  /** Variance of -log p under p, in nats squared. */
  readonly varentropy: number;
  /** Sum of the probabilities of `ModelConfig.endTokens`. */
  readonly endProbability: number;
  /** The `BackendLimits.topK` most likely ids, by logit descending, ties by id ascending. */
  readonly topIds: Uint32Array;
  /** Logits of `topIds`. */
  readonly topLogits: Float32Array;
}

/** What the attention of one sequence cost in a step, summed over layers and KV heads. */
export interface AttentionStats {
  readonly blocksRead: number;
  /** Blocks that dense attention would have read. */
  readonly blocksTotal: number;
  readonly bytesRead: number;
  /** Mean attention mass that was left out, where it is known. */
  readonly massDropped?: number;
}

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

/** For logs and `/health`. */
export interface BackendInfo {
  /** `wasm`, `webgpu`, `scripted`. */
  readonly kind: string;
  /** The variant in use, for example `relaxed` or an adapter's name. */
  readonly variant: string;
  readonly threads: number;
  /** Bytes of weights as they lie in the backend's memory. */
  readonly weightBytes: number;
  /** Bytes of the KV cache. */
  readonly kvBytes: number;
}

export interface Backend {
  readonly config: ModelConfig;
  readonly limits: BackendLimits;
  describe(): BackendInfo;

  /**
   * Runs one step. Writes the KV of every new token, then returns the statistics of the output rows.
   * Sequences of one batch may share blocks that are full and lie before their new tokens. The
   * result for a sequence does not depend on the rest of the batch, bit for bit.
   *
   * @throws {RangeError} A batch beyond `limits`, a token id outside the vocabulary, a block table
   * that is too short or names a block that does not exist. Nothing was computed.
   * @throws {BackendError} The machine failed; `fatal` says whether it has to be rebuilt.
   */
  forward(batch: readonly SequenceInput[], signal?: AbortSignal): Promise<ForwardResult>;

  /**
   * The full logits of an output row of the latest `forward`, shape [vocabularySize].
   * The array is the caller's to keep and to change.
   */
  logits(row: number): Promise<Float32Array>;

  /** Copies whole KV blocks: `[from, to]` pairs, in order. */
  copyBlocks(pairs: readonly (readonly [from: number, to: number])[]): Promise<void>;

  /** KV content of blocks, to be kept in host memory; opaque, `blocks.length` equal parts. */
  readBlocks(blocks: readonly number[]): Promise<Uint8Array>;

  /** Puts back what `readBlocks` gave, into these blocks, in the same order. */
  writeBlocks(blocks: readonly number[], content: Uint8Array): Promise<void>;

  /** Frees everything. Later calls reject with a `BackendError`. A second call does nothing. */
  dispose(): Promise<void>;
}
