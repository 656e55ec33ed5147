/** Holds the scan of sketched keys and the choice of blocks against plain arithmetic. */
import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import fc from "fast-check";
import { supports } from "../../wasm/loader.ts";
import { normals, randomNumbers } from "../support/random.ts";
import { Probe, type SketchInput } from "./probe.ts";

const VARIANTS = (["simd128", "relaxed"] as const).filter(supports);
const BLOCK = 16;

/** Keys, queries and maps of such sizes that scores spread and some codes are clipped. */
function sketchInput(headSize: number, dimensions: number, tokens: number): SketchInput {
  const random = randomNumbers(5);
  return {
    headSize,
    dimensions,
    keyMap: normals(dimensions * headSize, 3 / Math.sqrt(headSize), random),
    keyOffset: normals(dimensions, 0.5, random),
    queryMap: normals(dimensions * headSize, 0.4 / Math.sqrt(headSize), random),
    keys: normals(tokens * headSize, 1, random),
    q: normals(3 * headSize, 2, random),
  };
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const rows = (x: Float32Array, size: number) =>
  Array.from({ length: x.length / size }, (_, i) => x.subarray(i * size, (i + 1) * size));

/** Shares of each block in double precision, with codes rounded as the contract says. */
function exactShares(input: SketchInput): number[] {
  const codes = rows(input.keys, input.headSize).map((key) =>
    Float32Array.from(rows(input.keyMap, input.headSize), (row, i) => {
      const x = dot(row, key) - input.keyOffset[i]!;
      return Math.max(-7, Math.min(7, Math.round(x)));
    })
  );
  const shares = new Array<number>(Math.ceil(codes.length / BLOCK)).fill(0);
  for (const q of rows(input.q, input.headSize)) {
    const mapped = Float32Array.from(rows(input.queryMap, input.headSize), (row) => dot(row, q));
    const weights = codes.map((code) => Math.exp(dot(mapped, code)));
    const total = weights.reduce((sum, x) => sum + x, 0);
    weights.forEach((weight, i) => shares[Math.floor(i / BLOCK)]! += weight / total);
  }
  return shares;
}

for (const variant of VARIANTS) {
  for (
    const [headSize, dimensions, tokens] of [[64, 24, 200], [64, 32, 161], [32, 16, 64]] as const
  ) {
    Deno.test(`${variant} scan finds the shares of ${tokens} keys in ${dimensions} of ${headSize} dimensions`, async () => {
      const input = sketchInput(headSize, dimensions, tokens);
      const found = (await Probe.open(variant)).shares(input);
      const exact = exactShares(input);
      assertEquals(found.length, exact.length);
      // Powers of two are piecewise linear, at most 6 % off; queries have 8 bits.
      found.forEach((share, i) => {
        assertAlmostEquals(share, exact[i]!, 0.08 * exact[i]! + 1e-4, `block ${i}`);
      });
      assertAlmostEquals(found.reduce((sum, x) => sum + x, 0), 3, 1e-4);
      assert(
        Math.max(...exact) > 2 * Math.min(...exact),
        "the shares must differ to mean anything",
      );
    });
  }
}

Deno.test("the scan gives the same bits on every instruction set", async () => {
  const input = sketchInput(64, 24, 333);
  const [first, ...others] = await Promise.all(
    VARIANTS.map(async (variant) => (await Probe.open(variant)).shares(input)),
  );
  for (const other of others) assertEquals(other, first);
});

/** The definition: by rank, ties to the earlier, after the first and the last two. */
function chooseByRank(
  kind: "mass" | "threshold",
  share: number,
  least: number,
  shares: Float32Array,
) {
  const last = shares.length - 1;
  const chosen = [0, last - 1, last];
  const others = [...shares.keys()].filter((i) => !chosen.includes(i));
  others.sort((a, b) => shares[b]! - shares[a]! || a - b);
  let sum = chosen.reduce((sum, i) => Math.fround(sum + shares[i]!), 0);
  for (const i of others) {
    const wanted = kind === "mass" ? sum < share : shares[i]! >= share;
    if (!wanted && chosen.length >= least) break;
    chosen.push(i);
    sum = Math.fround(sum + shares[i]!);
  }
  return chosen.sort((a, b) => a - b);
}

Deno.test("blocks are chosen by rank, the first and the last two always", async () => {
  const probe = await Probe.open(VARIANTS.at(-1)!);
  fc.assert(fc.property(
    fc.constantFrom("mass" as const, "threshold" as const),
    fc.float({ min: 0, max: 1, noNaN: true }),
    fc.nat(40),
    fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 4, maxLength: 60 }),
    (kind, share, least, weights) => {
      const total = weights.reduce((sum, x) => sum + x, 0) || 1;
      const shares = Float32Array.from(weights, (x) => x / total);
      assertEquals(
        probe.choose(kind, share, least, shares),
        chooseByRank(kind, share, least, shares),
      );
    },
  ));
});
