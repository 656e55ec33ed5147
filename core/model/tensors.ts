/**
 * Names, types and places of a model's tensors, as the GGUF reader finds them and a backend loads
 * them. Formats: the ggml quantisation types, ids as in the GGUF specification.
 */
import type { ByteSource } from "./source.ts";
import type { ModelConfig } from "./config.ts";

/** Layout of a tensor type: `blockBytes` bytes hold `blockSize` elements of one row. */
export interface TensorLayout {
  readonly id: number;
  readonly blockSize: number;
  readonly blockBytes: number;
}

/** The tensor types that the project computes with. */
export const TENSOR_TYPES = {
  F32: { id: 0, blockSize: 1, blockBytes: 4 },
  F16: { id: 1, blockSize: 1, blockBytes: 2 },
  Q4_0: { id: 2, blockSize: 32, blockBytes: 18 },
  Q4_1: { id: 3, blockSize: 32, blockBytes: 20 },
  Q5_0: { id: 6, blockSize: 32, blockBytes: 22 },
  Q5_1: { id: 7, blockSize: 32, blockBytes: 24 },
  Q8_0: { id: 8, blockSize: 32, blockBytes: 34 },
  Q4_K: { id: 12, blockSize: 256, blockBytes: 144 },
  Q5_K: { id: 13, blockSize: 256, blockBytes: 176 },
  Q6_K: { id: 14, blockSize: 256, blockBytes: 210 },
  BF16: { id: 30, blockSize: 1, blockBytes: 2 },
} as const satisfies Record<string, TensorLayout>;

export type TensorType = keyof typeof TENSOR_TYPES;

export interface TensorInfo {
  readonly name: string;
  readonly type: TensorType;
  /** Elements of a row. */
  readonly columns: number;
  /** Rows; 1 for a vector. */
  readonly rows: number;
  /** Which of `ModelFiles.sources` holds it. */
  readonly source: number;
  /** First byte in that source. */
  readonly offset: number;
  readonly byteLength: number;
}

/**
 * A checked model, ready to be loaded: every tensor that the architecture needs is present and no
 * other, with the shape that `config` implies and with its bytes inside its source; vectors are F32.
 * Names are GGUF's (`token_embd.weight`, `blk.0.attn_q.weight`, `output_norm.weight`,
 * `rope_freqs.weight`, …).
 */
export interface ModelFiles {
  readonly config: ModelConfig;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly sources: readonly ByteSource[];
}
