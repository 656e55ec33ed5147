/** The part of the core that pruned attention needs: moments of keys and queries, and sketches. */
import type { KeyMoments, KeySketch } from "../core/engine/backend.ts";
import type { ModelConfig } from "../core/model/config.ts";

/** Dimensions of a code that the kernels are made for. */
const DIMENSIONS = [16, 24, 32];

/** @throws {RangeError} The sketch does not fit the model. */
export function checkSketch(sketch: KeySketch, { layers, kvHeads, headSize }: ModelConfig): void {
  const { dimensions } = sketch;
  const check = (name: string, value: number, allowed: readonly number[]) => {
    if (allowed.includes(value)) return;
    throw new RangeError(
      `Cannot use key sketch: ${name} is ${value}, allowed is ${allowed.join(", ")}`,
    );
  };
  check("dimensions", dimensions, DIMENSIONS.filter((size) => size <= headSize));
  const heads = layers * kvHeads;
  check("length of keyMap", sketch.keyMap.length, [heads * dimensions * headSize]);
  check("length of keyOffset", sketch.keyOffset.length, [heads * dimensions]);
  check("length of queryMap", sketch.queryMap.length, [heads * dimensions * headSize]);
}

/** The maps as the core takes them. */
export function packSketch({ keyMap, keyOffset, queryMap }: KeySketch): Float32Array<ArrayBuffer> {
  const packed = new Float32Array(keyMap.length + keyOffset.length + queryMap.length);
  packed.set(keyMap);
  packed.set(keyOffset, keyMap.length);
  packed.set(queryMap, keyMap.length + keyOffset.length);
  return packed;
}

/**
 * Means from the sums that the core gathered over `tokens` tokens: for each layer and KV head the
 * keys, their squares, and the squares of the group's queries.
 */
export function momentsOf(
  sums: Float32Array,
  tokens: number,
  { layers, heads, kvHeads, headSize }: ModelConfig,
): KeyMoments {
  const square = headSize * headSize, parts = layers * kvHeads;
  const keyMean = new Float32Array(parts * headSize);
  const keys = new Float32Array(parts * square), queries = new Float32Array(parts * square);
  const perToken = 1 / Math.max(1, tokens);
  const perQuery = perToken * kvHeads / heads;
  for (let part = 0; part < parts; part++) {
    const start = part * (headSize + 2 * square);
    const means = (from: number, count: number, scale: number) =>
      sums.subarray(start + from, start + from + count).map((sum) => sum * scale);
    keyMean.set(means(0, headSize, perToken), part * headSize);
    keys.set(means(headSize, square, perToken), part * square);
    queries.set(means(headSize + square, square, perQuery), part * square);
  }
  return { tokens, keyMean, keys, queries };
}
