/**
 * Runs single kernels of an artifact on given data. Rust checks nothing here: every buffer is
 * reserved for the call and never freed, so a probe is for one test.
 */
import type { Variant } from "../../wasm/loader.ts";
import { compile, instantiate, type KernelExports } from "../../wasm/loader.ts";
import type { Arithmetic } from "../../core/engine/arithmetic.ts";
import type { Draw } from "../../core/engine/backend.ts";
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";

export interface MatrixProduct {
  readonly type: TensorType;
  readonly rows: number;
  readonly columns: number;
  readonly weights: Uint8Array;
  /** Shape [tokens][columns]. */
  readonly x: Float32Array;
}

export interface AttentionInput {
  readonly headSize: number;
  /** Shape [3][headSize]. */
  readonly q: Float32Array;
  /** Shape [tokens][headSize]. */
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

/** A `KeySketch` of one layer and KV head, keys of shape [tokens][headSize], and q of [3][headSize]. */
export interface SketchInput {
  readonly headSize: number;
  readonly dimensions: number;
  readonly keyMap: Float32Array;
  readonly keyOffset: Float32Array;
  readonly queryMap: Float32Array;
  readonly keys: Float32Array;
  readonly q: Float32Array;
}

export interface Statistics {
  readonly max: number;
  readonly logZ: number;
  readonly entropy: number;
  readonly varentropy: number;
  readonly endProbability: number;
  readonly topIds: number[];
  readonly topLogits: number[];
}

export class Probe {
  readonly #exports: KernelExports;

  private constructor(exports: KernelExports) {
    this.#exports = exports;
  }

  static async open(variant: Variant): Promise<Probe> {
    const module = await compile(variant, new URL("../../wasm/lib/", import.meta.url));
    return new Probe(await instantiate(module));
  }

  #reserve(bytes: number): number {
    return this.#exports.probe_reserve(bytes) >>> 0;
  }

  #put(data: Uint8Array | Float32Array): number {
    const pointer = this.#reserve(data.byteLength);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    new Uint8Array(this.#exports.memory.buffer).set(bytes, pointer);
    return pointer;
  }

  #floats(pointer: number, count: number): Float32Array {
    return new Float32Array(this.#exports.memory.buffer, pointer, count).slice();
  }

  /** Shape [tokens][rows]; by the scalar reference or by the artifact's own kernels. */
  multiply(
    by: "reference" | "kernels",
    product: MatrixProduct,
    arithmetic: Arithmetic = "int8",
  ): Float32Array {
    const { type, rows, columns, weights, x } = product;
    const tokens = x.length / columns;
    const stride = Math.ceil(rows / 8) * 8;
    const out = this.#reserve(4 * tokens * stride);
    this.#exports.probe_matmul(
      Number(by === "reference"),
      Number(arithmetic === "f32"),
      TENSOR_TYPES[type].id,
      rows,
      columns,
      this.#put(weights),
      tokens,
      this.#put(x),
      out,
    );
    const padded = this.#floats(out, tokens * stride);
    return Float32Array.from(
      { length: tokens * rows },
      (_, i) => padded[Math.floor(i / rows) * stride + i % rows]!,
    );
  }

  /** Shape [rows][columns]: what the matrix says after repacking. */
  dequantize({ type, rows, columns, weights }: Omit<MatrixProduct, "x">): Float32Array {
    const out = this.#reserve(4 * rows * columns);
    const id = TENSOR_TYPES[type].id;
    this.#exports.probe_dequantize(id, rows, columns, this.#put(weights), out);
    return this.#floats(out, rows * columns);
  }

  /** Shape [3][headSize]: exact over floats, or with KV in `q8`. */
  attend(by: "reference" | "kernels", { headSize, q, keys, values }: AttentionInput): Float32Array {
    const out = this.#reserve(4 * q.length);
    this.#exports.probe_attention(
      Number(by === "reference"),
      headSize,
      keys.length / headSize,
      this.#put(q),
      this.#put(keys),
      this.#put(values),
      out,
    );
    return this.#floats(out, q.length);
  }

  /** The sum over the three heads of each block's share of the attention, as the scan finds it. */
  shares(input: SketchInput): Float32Array {
    const { headSize, dimensions, keyMap, keyOffset, queryMap, keys, q } = input;
    const tokens = keys.length / headSize, blocks = Math.ceil(tokens / 16);
    const maps = Float32Array.from([...keyMap, ...keyOffset, ...queryMap]);
    const out = this.#reserve(4 * blocks);
    this.#exports.probe_shares(
      headSize,
      dimensions,
      this.#put(maps),
      tokens,
      this.#put(keys),
      this.#put(q),
      out,
    );
    return this.#floats(out, blocks);
  }

  /** The blocks that a plan chooses by their shares. */
  choose(
    kind: "mass" | "threshold",
    share: number,
    least: number,
    shares: Float32Array,
  ): number[] {
    const out = this.#reserve(4 * shares.length);
    const count = this.#exports.probe_choose(
      kind === "mass" ? 1 : 2,
      share,
      least,
      shares.length,
      this.#put(shares),
      out,
    );
    return [...new Uint32Array(this.#exports.memory.buffer, out, count)];
  }

  statistics(logits: Float32Array, endToken: number, topK: number): Statistics {
    const [ids, best, out] = [4 * topK, 4 * topK, 40].map((bytes) => this.#reserve(bytes));
    const pointer = this.#put(logits);
    this.#exports.probe_statistics(pointer, logits.length, endToken, topK, ids!, best!, out!);
    const { buffer } = this.#exports.memory;
    const [max, logZ, entropy, varentropy, endProbability] = new Float64Array(buffer, out!, 5);
    return {
      max: max!,
      logZ: logZ!,
      entropy: entropy!,
      varentropy: varentropy!,
      endProbability: endProbability!,
      topIds: [...new Uint32Array(buffer, ids!, topK)],
      topLogits: [...new Float32Array(buffer, best!, topK)],
    };
  }

  /** The token drawn from a row; undefined where none is possible. */
  draw(logits: Float32Array, params: Draw): number | undefined {
    const { topK, topP, minP, temperature, u } = params;
    const pointer = this.#put(logits), args = [topK, topP, minP, temperature, u] as const;
    const token = this.#exports.probe_draw(pointer, logits.length, ...args) >>> 0;
    return token === 0xffffffff ? undefined : token;
  }

  /** exp of each number, by the kernels' polynomial. */
  exp(x: Float32Array): Float32Array {
    const padded = new Float32Array(Math.ceil(x.length / 4) * 4);
    padded.set(x);
    const pointer = this.#put(padded);
    this.#exports.probe_exp(pointer, padded.length);
    return this.#floats(pointer, x.length);
  }
}
