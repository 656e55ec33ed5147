import { assertEquals, assertLess } from "@std/assert";
import { ADAPTER, GpuProbe } from "../../tests/support/gpu.ts";
import { fromHalf, toHalf } from "../../tests/support/half.ts";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { type KvType, recordWords } from "../kv_layout.ts";
import { attendKernel, headTiles, partialFloats, splitsOf } from "./attend.ts";
import { mergeKernel } from "./merge.ts";
import { rotateKernel } from "./rotate.ts";

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
}

const BLOCKS = 20;
/** Logical block b of a sequence lies in physical block 19 - b. */
const TABLE = Uint32Array.from({ length: BLOCKS }, (_, b) => BLOCKS - 1 - b);

/** Rotates and stores a sequence's `qkv`, shape [tokens][heads + 2 KV heads][head size]. */
class Cache {
  readonly probe: GpuProbe;
  readonly shape: Shape;
  readonly type: KvType;
  readonly words: Uint32Array;

  constructor(probe: GpuProbe, shape: Shape, type: KvType) {
    [this.probe, this.shape, this.type] = [probe, shape, type];
    this.words = new Uint32Array(BLOCKS * shape.kvHeads * recordWords(this.kv));
  }

  get kv() {
    return { type: this.type, ...this.shape };
  }

  tokens(positions: readonly number[]): Uint32Array {
    return Uint32Array.from(positions.flatMap((position) => [0, position, 0, 0, 0, 0]));
  }

  async rotate(qkv: Float32Array, positions: readonly number[], rotated: number): Promise<void> {
    const { heads, kvHeads } = this.shape;
    const angles = Float32Array.from(
      positions.flatMap((position) =>
        Array.from({ length: rotated }, (_, i) => {
          const angle = position * 100 ** (-2 * Math.floor(i / 2) / rotated);
          return i % 2 ? Math.sin(angle) : Math.cos(angle);
        })
      ),
    );
    await this.probe.run(rotateKernel({ heads, kv: this.kv, rotated, dimensions: 0 }), {
      step: Uint32Array.of(positions.length),
      tokens: this.tokens(positions),
      tables: TABLE,
      angles,
      qkv,
      cache: this.words,
    }, [kvHeads, positions.length]);
  }

  /** Attention of rotated queries; shape [queries][heads][head size]. */
  async attend(
    qkv: Float32Array,
    positions: readonly number[],
    queries: readonly number[],
  ): Promise<Float32Array> {
    const { heads, kvHeads, headSize } = this.shape;
    const splits = splitsOf({ blocks: BLOCKS });
    const parameters = { heads, kv: this.kv, blocks: BLOCKS, pruned: false };
    const given = {
      step: Uint32Array.of(queries.length),
      slab: Uint32Array.of(0),
      queries: Uint32Array.from(queries),
      tokens: this.tokens(positions),
    };
    const partials = new Float32Array(queries.length * heads * splits * partialFloats(headSize));
    await this.probe.run(attendKernel(parameters), {
      ...given,
      tables: TABLE,
      qkv,
      keys: this.words,
      values: this.words,
      partials,
    }, [splits, queries.length, kvHeads * headTiles(parameters).tiles]);
    const attended = new Float32Array(queries.length * heads * headSize);
    await this.probe.run(mergeKernel(parameters), { ...given, partials, attended }, [
      heads,
      queries.length,
    ]);
    return attended;
  }
}

/** Attention in double precision over what `rotate` left in `qkv`, one row a position. */
function exactly(
  { heads, kvHeads, headSize }: Shape,
  qkv: Float32Array,
  keys: Float32Array,
  type: KvType,
  token: number,
) {
  const width = (heads + 2 * kvHeads) * headSize;
  const stored = (x: number) => type === "f16" ? fromHalf(toHalf(x)) : x;
  return Array.from({ length: heads }, (_, head) => {
    const kvHead = Math.floor(head / (heads / kvHeads));
    const q = qkv.subarray(token * width + head * headSize);
    const weights = Array.from({ length: token + 1 }, (_, p) => {
      let dot = 0;
      for (let i = 0; i < headSize; i++) {
        dot += q[i]! * stored(keys[(p * kvHeads + kvHead) * headSize + i]!);
      }
      return Math.exp(dot / Math.sqrt(headSize));
    });
    const total = weights.reduce((sum, w) => sum + w, 0);
    return Array.from({ length: headSize }, (_, i) =>
      weights.reduce((sum, w, p) => {
        const v = qkv[p * width + (heads + kvHeads + kvHead) * headSize + i]!;
        return sum + w / total * stored(v);
      }, 0));
  }).flat();
}

/** Keys of all positions, rotated in double precision. */
function rotatedKeys({ heads, kvHeads, headSize }: Shape, qkv: Float32Array, rotated: number) {
  const width = (heads + 2 * kvHeads) * headSize;
  const tokens = qkv.length / width;
  return Float32Array.from({ length: tokens * kvHeads * headSize }, (_, at) => {
    const i = at % headSize, head = Math.floor(at / headSize) % kvHeads;
    const position = Math.floor(at / headSize / kvHeads);
    const x = (j: number) => qkv[position * width + (heads + head) * headSize + j]!;
    if (i >= rotated) return x(i);
    const angle = position * 100 ** (-2 * Math.floor(i / 2) / rotated);
    return i % 2
      ? x(i - 1) * Math.sin(angle) + x(i) * Math.cos(angle)
      : x(i) * Math.cos(angle) - x(i + 1) * Math.sin(angle);
  });
}

const SHAPES: readonly (readonly [Shape, KvType, number])[] = [
  [{ heads: 9, kvHeads: 3, headSize: 64 }, "f16", 64],
  [{ heads: 4, kvHeads: 2, headSize: 16 }, "f32", 16],
  [{ heads: 2, kvHeads: 2, headSize: 128 }, "f32", 64],
  // More queries a group than a workgroup takes, and pairs that fill no whole turn of its threads.
  [{ heads: 10, kvHeads: 1, headSize: 48 }, "f16", 48],
];

for (const [shape, type, rotated] of SHAPES) {
  const { heads, kvHeads, headSize } = shape;
  Deno.test({
    name:
      `attention of ${heads}/${kvHeads} heads of ${headSize} over ${type} equals double precision`,
    ignore: ADAPTER === undefined,
  }, async () => {
    const probe = await GpuProbe.open();
    const tokens = 300;
    const width = (heads + 2 * kvHeads) * headSize;
    const qkv = normals(tokens * width, 1, randomNumbers(3));
    const keys = rotatedKeys(shape, qkv, rotated);
    const cache = new Cache(probe, shape, type);
    const positions = Array.from({ length: tokens }, (_, i) => i);
    await cache.rotate(qkv, positions, rotated);
    const queries = [0, 1, 15, 16, 127, 128, 200, 299];
    const found = await cache.attend(qkv, positions, queries);
    let largest = 0;
    for (const [i, token] of queries.entries()) {
      const size = heads * headSize;
      const expected = exactly(shape, qkv, keys, type, token);
      expected.forEach((x, j) => {
        largest = Math.max(largest, Math.abs(found[i * size + j]! - x));
      });
      // Alone, a query gives the same bits.
      assertEquals(
        await cache.attend(qkv, positions, [token]),
        found.slice(i * size, (i + 1) * size),
      );
    }
    console.log(`attention over ${type}, largest difference ${largest.toExponential(1)}`);
    // A key that lies between two halves may be rounded to either.
    assertLess(largest, type === "f16" ? 1e-3 : 1e-5);
    probe.close();
  });
}
