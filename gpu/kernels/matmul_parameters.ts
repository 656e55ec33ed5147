/** What a matmul is asked for. */
import type { Arithmetic } from "../../core/engine/arithmetic.ts";
import type { TensorType } from "../../core/model/tensors.ts";

/** How the work is cut. */
export interface Tile {
  /** Tokens of a workgroup. */
  readonly tokens: number;
  /** Rows that a thread keeps. */
  readonly rows: number;
  readonly threads: number;
  /** Whether activations go through workgroup memory; those in 8 bits always do. */
  readonly staged: boolean;
}

export interface MatmulParameters {
  readonly type: TensorType;
  /** Of a second matrix, whose rows follow: `quants2`, `scales2`, `part2`. */
  readonly second?: TensorType | undefined;
  readonly columns: number;
  readonly arithmetic: Arithmetic;
  /**
   * What becomes of the products: `store` them; `add` them to the residual stream; or `swiglu`, where
   * rows alternate between gate and up projection and each pair becomes silu(gate) * up.
   */
  readonly output: "store" | "add" | "swiglu";
  /** Whether the input is normalised on the way (RMSNorm, arXiv 1910.07467), with this epsilon. */
  readonly norm?: number;
  readonly tile: Tile;
}

/** How activations come to workgroup memory. */
export interface Staging {
  /** Bytes that a token's block takes there. */
  readonly bytes: number;
  /**
   * Workgroup memory for so many blocks, and `fn stage(to: u32, token: u32, block: u32)`, which leaves a
   * block of a token there, as number `to`; the sum of its squares goes to `block_squares[to]` where
   * the input is normalised.
   */
  memory(slots: number): string;
}

/** How a matmul sums up. It takes blocks of columns, and a lane every so many of them. */
export interface Summation {
  /** Columns of a block. */
  readonly block: number;
  /** Threads that share a row; their parts are added in order. */
  readonly lanes: number;
  /** Missing where activations are read from their buffer. */
  readonly staging?: Staging;
  /**
   * Statements that add `block` to a thread's sums, `sum{row}_{token}`. Its rows begin at the blocks
   * `row0`, `row1`, … of the matrix. Without staging, they also declare `block_square{token}`, the sums
   * of squares, where the input is normalised.
   *
   * @param at Expression: the number under which a token of the tile has the block staged; without
   * staging, its first vector of four in `x`.
   */
  products(slots: number, at: (token: number) => string): string;
}
