/**
 * Holds the SIMD kernels of each artifact against the scalar reference, to the last bit, and the
 * reference against an independent decoder of the file formats. Prints the largest differences.
 */
import { assert, assertEquals, assertLess } from "@std/assert";
import { ARITHMETICS } from "../../core/engine/arithmetic.ts";
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { supports } from "../../wasm/loader.ts";
import { dequantise } from "../support/dequantise.ts";
import { toHalf } from "../support/half.ts";
import { quantise } from "../support/quantise.ts";
import { normals, randomNumbers } from "../support/random.ts";
import { Probe } from "./probe.ts";

const TYPES = Object.keys(TENSOR_TYPES) as TensorType[];
const VARIANTS = (["simd128", "relaxed"] as const).filter(supports);
const ROWS = 13; // neither whole bands nor whole quads
const COLUMNS = 512;

/** Largest |a - b|; Infinity where only one of the two is a number. */
function largestDifference(a: Float32Array, b: Float32Array): number {
  assertEquals(a.length, b.length);
  return a.reduce((most, x, i) => {
    if (Object.is(x, b[i])) return most;
    const difference = Math.abs(x - b[i]!);
    return Math.max(most, Number.isNaN(difference) ? Infinity : difference);
  }, 0);
}

/** Where the halves (f16) of a block that hold scales and minima begin. */
const SCALE_OFFSETS: Partial<Record<TensorType, number[]>> = {
  Q4_0: [0],
  Q4_1: [0, 2],
  Q5_0: [0],
  Q5_1: [0, 2],
  Q8_0: [0],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
};

/** Where a minimum, of 8 or 16 scales, is kept as a half. */
const LARGEST_SCALES: Partial<Record<TensorType, number>> = { Q4_0: 8180, Q5_0: 4090 };

/** Weights whose every byte is drawn by `byte`, and whose scales are these halves. */
function blocks(type: TensorType, byte: () => number, scales: () => number): Uint8Array {
  const { blockSize, blockBytes } = TENSOR_TYPES[type];
  const bytes = Uint8Array.from({ length: ROWS * COLUMNS / blockSize * blockBytes }, byte);
  const view = new DataView(bytes.buffer);
  for (let block = 0; block < bytes.length; block += blockBytes) {
    for (const offset of SCALE_OFFSETS[type] ?? []) {
      view.setUint16(block + offset, scales(), true);
    }
  }
  return bytes;
}

const isFloat = (type: TensorType) => TENSOR_TYPES[type].blockSize === 1;

/** Cases of weights by name: drawn from a normal distribution, and the corners of each format. */
function weightCases(type: TensorType): Record<string, Uint8Array> {
  const random = randomNumbers(7);
  const cases: Record<string, Uint8Array> = {
    normal: quantise(type, normals(ROWS * COLUMNS, 0.05, random)),
    "all zero": blocks(type, () => 0, () => 0),
  };
  if (isFloat(type)) return cases;
  const anyByte = () => Math.floor(256 * random());
  return {
    ...cases,
    "any bytes": blocks(type, anyByte, () => toHalf(random() - 0.5)),
    "all ones": blocks(type, () => 255, () => toHalf(0.01)),
    "most negative": blocks(type, () => 0x80, () => toHalf(-0.01)),
    "zero scales": blocks(type, anyByte, () => 0),
    "denormal scales": blocks(type, anyByte, () => 1 + Math.floor(1023 * random())),
    "huge scales": blocks(type, anyByte, () => toHalf(LARGEST_SCALES[type] ?? 6e4)),
  };
}

/** Cases of activations by name, shape [tokens][COLUMNS]. */
function inputCases(tokens: number): Record<string, Float32Array> {
  const random = randomNumbers(tokens);
  const count = tokens * COLUMNS;
  return {
    normal: normals(count, 1, random),
    "all largest": new Float32Array(count).fill(3),
    "all smallest": new Float32Array(count).fill(-3),
    "zero": new Float32Array(count),
    "denormal": normals(count, 1e-40, random),
    "one outlier": normals(count, 1e-3, random).map((x, i) => i % COLUMNS === 77 ? 900 : x),
  };
}

for (const variant of VARIANTS) {
  for (const type of TYPES) {
    for (const arithmetic of ARITHMETICS) {
      Deno.test(`${variant} multiplies ${type} in ${arithmetic} as the scalar reference does, bit by bit`, async () => {
        const probe = await Probe.open(variant);
        let products = 0;
        for (const [name, weights] of Object.entries(weightCases(type))) {
          for (const tokens of [1, 2, 3, 4, 7]) {
            for (const [input, x] of Object.entries(inputCases(tokens))) {
              const product = { type, rows: ROWS, columns: COLUMNS, weights, x };
              const expected = probe.multiply("reference", product, arithmetic);
              const actual = probe.multiply("kernels", product, arithmetic);
              const difference = largestDifference(actual, expected);
              assertEquals(difference, 0, `${name} weights, ${input} input, ${tokens} tokens`);
              products++;
            }
          }
        }
        console.log(`${variant} ${type} ${arithmetic}: ${products} products, largest difference 0`);
      });
    }

    Deno.test(`${variant} repacks ${type} without changing a value`, async () => {
      const probe = await Probe.open(variant);
      let relative = 0;
      for (const weights of Object.values(weightCases(type))) {
        const actual = probe.dequantize({ type, rows: ROWS, columns: COLUMNS, weights });
        const expected = dequantise(type, weights);
        const peak = expected.reduce((peak, x) => Math.max(peak, Math.abs(x)), 1e-30);
        relative = Math.max(relative, largestDifference(actual, expected) / peak);
      }
      console.log(
        `${variant} ${type}: largest difference ${relative.toExponential(1)} of the peak`,
      );
      assertLess(relative, 1e-6); // the decoder in double precision rounds once, the core twice
    });

    for (const arithmetic of ARITHMETICS) {
      Deno.test(`${variant} multiplies ${type} as exact arithmetic does, but for rounded input, ${arithmetic}`, async () => {
        const probe = await Probe.open(variant);
        const weights = weightCases(type)["normal"]!;
        const x = inputCases(4)["normal"]!;
        const product = { type, rows: ROWS, columns: COLUMNS, weights, x };
        const actual = probe.multiply("kernels", product, arithmetic);
        const values = dequantise(type, weights);
        let [squares, errors] = [0, 0];
        for (let token = 0; token < 4; token++) {
          for (let row = 0; row < ROWS; row++) {
            let exact = 0;
            for (let k = 0; k < COLUMNS; k++) {
              exact += values[row * COLUMNS + k]! * x[token * COLUMNS + k]!;
            }
            squares += exact ** 2;
            errors += (actual[token * ROWS + row]! - exact) ** 2;
          }
        }
        const relative = Math.sqrt(errors / squares);
        console.log(
          `${variant} ${type} ${arithmetic}: error ${(100 * relative).toFixed(4)} % of the result`,
        );
        // Values of up to 2.5 deviations in 127 steps: about 0.6 % each, and so their sum; in f32, of
        // what those leave, in 127 steps again.
        assertLess(relative, isFloat(type) ? 1e-6 : arithmetic === "f32" ? 1e-4 : 0.01);
      });
    }
  }

  for (const headSize of [16, 64, 96]) {
    Deno.test(`${variant} attends over q8 KV close to exact attention, heads of ${headSize}`, async () => {
      const probe = await Probe.open(variant);
      // Beyond 1,024 tokens in parts.
      for (const tokens of [1, 5, 16, 17, 200, 1024, 1025, 2600]) {
        const random = randomNumbers(tokens);
        const input = {
          headSize,
          q: normals(3 * headSize, 2, random),
          keys: normals(tokens * headSize, 1, random),
          values: normals(tokens * headSize, 1, random),
        };
        const exact = probe.attend("reference", input);
        const actual = probe.attend("kernels", input);
        const difference = largestDifference(actual, exact);
        console.log(`${variant}, ${tokens} tokens: largest difference ${difference.toFixed(4)}`);
        assertLess(difference, 0.06);
      }
    });
  }

  Deno.test(`${variant} computes exp within two units in the last place`, async () => {
    const probe = await Probe.open(variant);
    const x = Float32Array.from({ length: 20000 }, (_, i) => -i * 87 / 20000);
    const worst = probe.exp(x).reduce((worst, y, i) => {
      return Math.max(worst, Math.abs(y / Math.exp(x[i]!) - 1));
    }, 0);
    console.log(`${variant} exp: largest relative error ${worst.toExponential(2)}`);
    assertLess(worst, 2 ** -22);
    const corners = probe.exp(Float32Array.of(0, -88, -1e30, -Infinity, NaN));
    assertEquals([...corners], [1, 0, 0, 0, NaN]);
  });
}

Deno.test("simd128 and relaxed attend alike, bit by bit", {
  ignore: VARIANTS.length < 2,
}, async () => {
  const [first, second] = await Promise.all([Probe.open("simd128"), Probe.open("relaxed")]);
  const random = randomNumbers(3);
  const [q, keys, values] = [192, 64 * 1333, 64 * 1333].map((n) => normals(n, 1.5, random));
  const input = { headSize: 64, q: q!, keys: keys!, values: values! };
  const a = first.attend("kernels", input);
  assert(a.some((x) => x !== 0));
  assertEquals(largestDifference(a, second.attend("kernels", input)), 0);
});
