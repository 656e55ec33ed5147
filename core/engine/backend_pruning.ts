/** What every backend that prunes its attention has to check and to hand over. */
import type { ModelConfig } from "../model/config.ts";
import type { KeyMoments, KeySketch } from "./backend.ts";

/**
 * @param allowed Dimensions of a code that the backend is made for.
 * @throws {RangeError} The sketch does not fit the model.
 */
export function checkSketch(
  sketch: KeySketch,
  { layers, kvHeads, headSize }: ModelConfig,
  allowed: readonly number[],
): void {
  const { dimensions } = sketch;
  const check = (name: string, value: number, allowed: readonly number[]) => {
    if (allowed.includes(value)) return;
    throw new RangeError(
      `Cannot use key sketch: ${name} is ${value}, allowed is ${allowed.join(", ")}`,
    );
  };
  check("dimensions", dimensions, allowed.filter((size) => size <= headSize));
  const heads = layers * kvHeads;
  check("length of keyMap", sketch.keyMap.length, [heads * dimensions * headSize]);
  check("length of keyOffset", sketch.keyOffset.length, [heads * dimensions]);
  check("length of queryMap", sketch.queryMap.length, [heads * dimensions * headSize]);
}

/**
 * Means from the sums that a backend gathered over `tokens` tokens: for each layer and KV head the
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
