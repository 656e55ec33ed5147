import { assert, assertEquals, assertLess } from "@std/assert";
import { ARITHMETICS } from "../../core/engine/arithmetic.ts";
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { dequantise } from "../../tests/support/dequantise.ts";
import { ADAPTER, GpuProbe, type KernelData } from "../../tests/support/gpu.ts";
import { quantise } from "../../tests/support/quantise.ts";
import { normals, randomNumbers } from "../../tests/support/random.ts";
import { quantWords, scaleWords } from "../packed.ts";
import { repack } from "../repack.ts";
import { embedKernel } from "./embed.ts";
import { matmulKernel, rowsAtOnce } from "./matmul.ts";
import { BLOCK, isInteger } from "./matmul_integers.ts";
import type { MatmulParameters, Tile } from "./matmul_parameters.ts";
import { cutOf, tileOf, tokensOfCuts } from "./matmul_tiles.ts";

const TYPES = Object.keys(TENSOR_TYPES) as TensorType[];
const EPSILON = 1e-5;
const ALONE = { tokens: 1, rows: 2, threads: 64, staged: false };
const FEW = { tokens: 4, rows: 4, threads: 64, staged: false };
const TILES = [ALONE, ...tokensOfCuts(true).map((tokens) => tileOf(cutOf(tokens, true), 4096))];

/** A packed matrix, and its values in plain floats. */
function matrix(type: TensorType, rows: number, columns: number, seed = 7) {
  const bytes = quantise(
    type,
    normals(rows * columns, 1 / Math.sqrt(columns), randomNumbers(seed)),
  );
  const elements = rows * columns;
  const quants = new Uint32Array(quantWords(type, elements));
  const scales = new Uint32Array(scaleWords(type, elements));
  const target = {
    quants: new Uint16Array(quants.buffer),
    scales: new Uint16Array(scales.buffer),
  };
  repack(type, new Uint16Array(bytes.buffer), elements, target, 0);
  return { quants, scales, values: dequantise(type, bytes), rows, columns };
}

type Matrix = ReturnType<typeof matrix>;

/** Runs a matmul over `x`, shape [tokens][columns]; the result's shape is [tokens][width]. */
async function multiply(
  probe: GpuProbe,
  { quants, scales, rows, columns }: Matrix,
  x: Float32Array,
  parameters: Omit<MatmulParameters, "columns">,
  extra: KernelData = {},
): Promise<Float32Array> {
  const tokens = x.length / columns;
  const width = parameters.output === "swiglu" ? rows / 2 : rows;
  const y = new Float32Array(tokens * width);
  const all = { ...parameters, columns };
  await probe.run(matmulKernel(all), {
    quants,
    scales,
    part: Uint32Array.of(0, rows),
    step: Uint32Array.of(tokens),
    width: Uint32Array.of(width),
    x,
    y,
    ...extra,
  }, [Math.ceil(rows / rowsAtOnce(all)), Math.ceil(tokens / parameters.tile.tokens)]);
  return y;
}

/** W x in double precision. */
function exactly({ values, rows, columns }: Matrix, x: Float32Array): Float64Array {
  return Float64Array.from({ length: x.length / columns * rows }, (_, i) => {
    const [token, row] = [Math.floor(i / rows), i % rows];
    let sum = 0;
    for (let k = 0; k < columns; k++) sum += values[row * columns + k]! * x[token * columns + k]!;
    return sum;
  });
}

const largest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a, (x, i) => Math.abs(x - b[i]!)).reduce((most, x) => Math.max(most, x), 0);

/** Calls with each value, how many of its block's 127 units it has, and the unit. */
const perUnit = (x: Float32Array, text: (units: number, unit: number) => number) =>
  x.map((value, i) => {
    const block = x.subarray(i - i % BLOCK, i - i % BLOCK + BLOCK);
    const unit = block.reduce((most, v) => Math.max(most, Math.abs(v)), 0) / 127;
    return text(value / unit, unit);
  });

/** What is left of activations in 8 bits. */
const inBytes = (x: Float32Array) => perUnit(x, (units, unit) => unit * Math.round(units));

/** Activations that no division, however exact, rounds another way. */
const offTies = (x: Float32Array) =>
  perUnit(x, (units, unit) => unit * (Math.round(units) + 0.8 * (units - Math.round(units))));

Deno.test({
  name: "matmul equals double precision for every tensor type",
  ignore: ADAPTER === undefined,
}, async (t) => {
  const probe = await GpuProbe.open();
  const x = offTies(normals(3 * 768, 1, randomNumbers(3)));
  for (const arithmetic of ARITHMETICS) {
    await t.step(arithmetic, async () => {
      const differences: string[] = [];
      for (
        const type of TYPES.filter((type) =>
          isInteger({ type, arithmetic: "int8" }) || arithmetic === "f32"
        )
      ) {
        const w = matrix(type, 21, 768);
        const given = { type, arithmetic, output: "store", tile: ALONE } as const;
        const y = await multiply(probe, w, x, given);
        const difference = largest(y, exactly(w, arithmetic === "int8" ? inBytes(x) : x));
        differences.push(`${type} ${difference.toExponential(1)}`);
        assertLess(difference, 5e-6, type);
        assert(Math.max(...y) > 0.5, "the products must be of some size");
      }
      console.log(`matmul in ${arithmetic}, largest difference: ${differences.join(", ")}`);
    });
  }
  probe.close();
});

for (const arithmetic of ARITHMETICS) {
  Deno.test({
    name: `matmul in ${arithmetic} gives the same bits whatever the tile and the neighbours`,
    ignore: ADAPTER === undefined,
  }, async () => {
    const probe = await GpuProbe.open();
    // More than comes to workgroup memory at once, and no multiple of it.
    const columns = 1056;
    for (const [type, norm] of [["Q4_1", EPSILON], ["Q8_0", undefined]] as const) {
      const w = matrix(type, 80, columns);
      const x = normals(11 * columns, 1, randomNumbers(3));
      const gain = normals(columns, 1, randomNumbers(4));
      const given = { type, arithmetic, output: "store", ...(norm && { norm }) } as const;
      const run = (x: Float32Array, tile: Tile) =>
        multiply(probe, w, x, { ...given, tile }, norm ? { gain } : {});
      const alone = [];
      for (let t = 0; t < 11; t++) {
        alone.push(...await run(x.subarray(t * columns, (t + 1) * columns), ALONE));
      }
      for (const tile of TILES) {
        const name = `${type}, ${JSON.stringify(tile)}`;
        assertEquals(await run(x, tile), Float32Array.from(alone), name);
      }
    }
    probe.close();
  });

  Deno.test({
    name: `matmul in ${arithmetic} of two matrices in two types gives the bits of each alone`,
    ignore: ADAPTER === undefined,
  }, async () => {
    const probe = await GpuProbe.open();
    const columns = 768;
    const x = normals(9 * columns, 1, randomNumbers(3));
    const gain = normals(columns, 1, randomNumbers(4));
    const above = matrix("Q4_K", 75, columns), below = matrix("Q6_K", 34, columns, 8);
    for (const tile of [FEW, TILES.at(-1)!]) {
      const given = { type: "Q4_K", arithmetic, output: "store", norm: EPSILON, tile } as const;
      const first = await multiply(probe, above, x, given, { gain });
      const then = await multiply(probe, below, x, { ...given, type: "Q6_K" }, { gain });
      const both = { ...given, second: "Q6_K", columns } as const;
      const groups = [75, 34].reduce((sum, rows) => sum + Math.ceil(rows / rowsAtOnce(both)), 0);
      const y = new Float32Array(9 * 109);
      await probe.run(matmulKernel(both), {
        ...{ quants: above.quants, scales: above.scales, part: Uint32Array.of(0, 75) },
        ...{ quants2: below.quants, scales2: below.scales, part2: Uint32Array.of(75, 34) },
        ...{ step: Uint32Array.of(9), width: Uint32Array.of(109), x, y, gain },
      }, [groups, Math.ceil(9 / tile.tokens)]);
      for (let t = 0; t < 9; t++) {
        const row = y.subarray(109 * t, 109 * (t + 1));
        assertEquals(row.subarray(0, 75), first.subarray(75 * t, 75 * (t + 1)));
        assertEquals(row.subarray(75), then.subarray(34 * t, 34 * (t + 1)));
      }
    }
    probe.close();
  });

  Deno.test({
    name:
      `matmul in ${arithmetic} normalises its input, adds to the residual stream, applies SwiGLU`,
    ignore: ADAPTER === undefined,
  }, async () => {
    const probe = await GpuProbe.open();
    const [type, columns, tokens] = ["Q8_0", 96, 3] as const;
    const w = matrix(type, 10, columns);
    const gain = normals(columns, 1, randomNumbers(4));
    const gained = offTies(normals(tokens * columns, 2, randomNumbers(3)));
    const x = gained.map((value, i) => value / gain[i % columns]!);
    const normed = (arithmetic === "int8" ? inBytes(gained) : gained).map((value, i) => {
      const row = x.subarray(i - i % columns, i - i % columns + columns);
      const square = row.reduce((sum, v) => sum + v * v, 0) / columns;
      return value / Math.sqrt(square + EPSILON);
    });
    const products = exactly(w, normed);
    const given = { type, arithmetic, norm: EPSILON, tile: FEW } as const;

    const stored = await multiply(probe, w, x, { ...given, output: "store" }, { gain });
    assertLess(largest(stored, products), 1e-5);

    const residual = normals(5 * 10, 1, randomNumbers(5));
    const sources = Uint32Array.of(4, 0, 2);
    const added = await multiply(probe, w, x, { ...given, output: "add" }, {
      ...{ gain, residual, sources },
    });
    const sum = products.map((p, i) => p + residual[sources[Math.floor(i / 10)]! * 10 + i % 10]!);
    assertLess(largest(added, sum), 1e-5);

    const activated = await multiply(probe, w, x, { ...given, output: "swiglu" }, { gain });
    const expected = Float64Array.from({ length: tokens * 5 }, (_, i) => {
      const [gate, up] = [products[2 * i]!, products[2 * i + 1]!];
      return gate / (1 + Math.exp(-gate)) * up;
    });
    assertLess(largest(activated, expected), 1e-5);
    probe.close();
  });
}

Deno.test({
  name: "matmul in int8 passes on what is no number, and takes a row of zeros",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const w = matrix("Q4_1", 16, 64);
  const x = new Float32Array(3 * 64);
  x[64 + 40] = NaN;
  x.set(normals(64, 1e30, randomNumbers(3)), 128);
  const given = { type: "Q4_1", arithmetic: "int8", output: "store", tile: FEW } as const;
  const y = await multiply(probe, w, x, given);
  assertEquals(y.subarray(0, 16), new Float32Array(16));
  assert(y.subarray(16, 32).every(Number.isNaN));
  assert(y.subarray(32).every(Number.isFinite));
  probe.close();
});

Deno.test({
  name: "embed decodes the rows of its part, for every tensor type",
  ignore: ADAPTER === undefined,
}, async () => {
  const probe = await GpuProbe.open();
  const ids = [3, 12, 5];
  for (const type of TYPES) {
    const columns = 256;
    const { quants, scales, values } = matrix(type, 8, columns);
    const hidden = new Float32Array(3 * columns).fill(9);
    await probe.run(embedKernel({ type, columns }), {
      ...{ quants, scales, hidden },
      part: Uint32Array.of(5, 8),
      step: Uint32Array.of(3),
      tokens: Uint32Array.from(ids.flatMap((id) => [id, 0, 0, 0, 0, 0])),
    }, [1, 3]);
    // Row 3 lies before the part.
    assertEquals(hidden.subarray(0, columns), new Float32Array(columns).fill(9));
    for (const [t, id] of ids.entries()) {
      if (id < 5) continue;
      const expected = values.subarray((id - 5) * columns, (id - 4) * columns);
      assertLess(largest(hidden.subarray(t * columns, (t + 1) * columns), expected), 1e-6, type);
    }
  }
  probe.close();
});
