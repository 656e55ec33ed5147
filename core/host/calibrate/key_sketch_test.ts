import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import type { KeyMoments, KeySketch } from "../../engine/backend.ts";
import { normals, randomNumbers } from "../../../tests/support/random.ts";
import { keySketch } from "./key_sketch.ts";

const SIZE = 16;
const SHAPE = { layers: 1, kvHeads: 2, headSize: SIZE };
const HEADS = SHAPE.layers * SHAPE.kvHeads;

/** Vectors whose spread falls off along random directions, around a mean; shape [count][SIZE]. */
function cloud(count: number, seed: number, decay: number, shift: number): Float32Array[] {
  const random = randomNumbers(seed);
  const directions = Array.from({ length: SIZE }, () => normals(SIZE, 1, random));
  const mean = normals(SIZE, shift, random);
  return Array.from({ length: count }, () => {
    const vector = mean.slice();
    directions.forEach((direction, i) => {
      const [part] = normals(1, decay ** i, random);
      direction.forEach((value, j) => vector[j]! += part! * value);
    });
    return vector;
  });
}

/** Of each head: queries and keys that do not vary along the same directions. */
const HEAD_DATA = Array.from({ length: HEADS }, (_, head) => ({
  queries: cloud(2000, 10 * head + 1, 0.75, 1),
  keys: cloud(2000, 10 * head + 2, 0.8, 4),
}));

function meanOfProducts(vectors: readonly Float32Array[]): Float32Array {
  const sum = new Float32Array(SIZE * SIZE);
  for (const vector of vectors) {
    for (let i = 0; i < SIZE * SIZE; i++) {
      sum[i]! += vector[Math.floor(i / SIZE)]! * vector[i % SIZE]! / vectors.length;
    }
  }
  return sum;
}

function momentsOf(data: typeof HEAD_DATA): KeyMoments {
  const join = (parts: Float32Array[]) => Float32Array.from(parts.flatMap((part) => [...part]));
  const mean = (vectors: Float32Array[]) =>
    Float32Array.from(
      { length: SIZE },
      (_, i) => vectors.reduce((sum, vector) => sum + vector[i]!, 0) / vectors.length,
    );
  return {
    tokens: 2000,
    keyMean: join(data.map(({ keys }) => mean(keys))),
    keys: join(data.map(({ keys }) => meanOfProducts(keys))),
    queries: join(data.map(({ queries }) => meanOfProducts(queries))),
  };
}

const MOMENTS = momentsOf(HEAD_DATA);

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
};

const map = (matrix: Float32Array, head: number, dimensions: number, vector: Float32Array) =>
  Array.from({ length: dimensions }, (_, i) => {
    const row = (head * dimensions + i) * SIZE;
    return dot(matrix.subarray(row, row + SIZE), vector);
  });

/** Scores as the backend estimates them; `code` makes a part of a key into a part of its code. */
function scores(
  { dimensions, keyMap, keyOffset, queryMap }: KeySketch,
  head: number,
  query: Float32Array,
  keys: readonly Float32Array[],
  code = (part: number) => Math.max(-7, Math.min(7, Math.round(part))),
): number[] {
  const mapped = map(queryMap, head, dimensions, query);
  return keys.map((key) =>
    dot(
      mapped,
      map(keyMap, head, dimensions, key).map((part, i) =>
        code(part - keyOffset[head * dimensions + i]!)
      ),
    )
  );
}

const exactScores = (query: Float32Array, keys: readonly Float32Array[]) =>
  keys.map((key) => dot(query, key) / Math.sqrt(SIZE));

function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((x, y) => x + y) / values.length;
  const around = (values: readonly number[]) => {
    const middle = mean(values);
    return values.map((value) => value - middle);
  };
  const [x, y] = [around(a), around(b)];
  return dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y));
}

/** Mean over heads and queries of the correlation with exact scores. */
function agreement(sketch: KeySketch): number {
  let sum = 0;
  for (const [head, { queries, keys }] of HEAD_DATA.entries()) {
    for (const query of queries.slice(0, 20)) {
      const some = keys.slice(0, 300);
      sum += correlation(scores(sketch, head, query, some), exactScores(query, some));
    }
  }
  return sum / (20 * HEADS);
}

Deno.test("keySketch has the shapes of its contract", () => {
  const { dimensions, keyMap, keyOffset, queryMap } = keySketch(MOMENTS, SHAPE, 8);
  assertEquals(dimensions, 8);
  assertEquals([keyMap.length, queryMap.length], [HEADS * 8 * SIZE, HEADS * 8 * SIZE]);
  assertEquals(keyOffset.length, HEADS * 8);
  assert([...keyMap, ...keyOffset, ...queryMap].every(Number.isFinite));
});

Deno.test("keySketch of full rank gives the exact scores but for a constant", () => {
  const sketch = keySketch(MOMENTS, SHAPE, SIZE);
  for (const [head, { queries, keys }] of HEAD_DATA.entries()) {
    for (const query of queries.slice(0, 5)) {
      const some = keys.slice(0, 10);
      const found = scores(sketch, head, query, some, (part) => part);
      const exact = exactScores(query, some);
      for (const [i, score] of found.entries()) {
        assertAlmostEquals(score - found[0]!, exact[i]! - exact[0]!, 1e-3);
      }
    }
  }
});

Deno.test("keySketch of half the rank, in 4 bits, keeps the order of the scores", () => {
  const random = randomNumbers(7);
  const closed = agreement(keySketch(MOMENTS, SHAPE, 8));
  // Directions at random, with steps that fit the parts that they see.
  const directions = normals(HEADS * 8 * SIZE, 1 / Math.sqrt(SIZE), random);
  const blind: KeySketch = {
    dimensions: 8,
    keyMap: directions.slice(),
    keyOffset: new Float32Array(HEADS * 8),
    queryMap: directions.slice(),
  };
  for (let part = 0; part < HEADS * 8; part++) {
    const row = directions.subarray(part * SIZE, (part + 1) * SIZE);
    const seen = HEAD_DATA[Math.floor(part / 8)]!.keys.map((key) => dot(row, key));
    const mean = seen.reduce((x, y) => x + y) / seen.length;
    const step = 0.42 * Math.sqrt(seen.reduce((x, y) => x + (y - mean) ** 2, 0) / seen.length);
    for (let i = 0; i < SIZE; i++) {
      blind.keyMap[part * SIZE + i]! /= step;
      blind.queryMap[part * SIZE + i]! *= step;
    }
    blind.keyOffset[part] = mean / step;
  }
  const random8 = agreement(blind);
  assert(closed > 0.97, `closed form ${closed}`);
  assert(1 - closed < 0.1 * (1 - random8), `closed form ${closed}, random ${random8}`);
});

Deno.test("keySketch uses the codes' whole range and little beyond", () => {
  const sketch = keySketch(MOMENTS, SHAPE, 8);
  let clipped = 0, square = 0, count = 0;
  for (const [head, { queries, keys }] of HEAD_DATA.entries()) {
    scores(sketch, head, queries[0]!, keys, (part) => {
      if (Math.abs(part) > 7.5) clipped++;
      square += part * part;
      count++;
      return part;
    });
  }
  assertAlmostEquals(Math.sqrt(square / count), 1 / 0.42, 0.1);
  assert(clipped / count < 0.01, `clipped ${clipped / count}`);
});

Deno.test("keySketch stays finite where a head sees nothing", () => {
  const nothing = {
    tokens: 1,
    keyMean: new Float32Array(HEADS * SIZE),
    keys: new Float32Array(HEADS * SIZE * SIZE),
    queries: new Float32Array(HEADS * SIZE * SIZE),
  };
  const { keyMap, queryMap } = keySketch(nothing, SHAPE, 8);
  assert([...keyMap, ...queryMap].every(Number.isFinite));
});

Deno.test("keySketch refuses dimensions that codes cannot have, and moments of nothing", () => {
  for (const dimensions of [0, 4, 12, 24, NaN]) {
    assertThrows(() => keySketch(MOMENTS, SHAPE, dimensions), RangeError, "multiples of 8 to 16");
  }
  assertThrows(() => keySketch({ ...MOMENTS, tokens: 0 }, SHAPE, 8), RangeError, "no token");
});
