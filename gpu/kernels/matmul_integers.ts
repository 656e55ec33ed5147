/**
 * Sums of integer products. Activations are rounded to 8 bits, a scale for 32 of them, as llama.cpp
 * and the WASM core do before quantised products; levels of weights are bytes already, and
 * `dot4I8Packed` multiplies and adds four pairs at a time, exactly. Scales and minima join in floats,
 * once for 32 columns.
 *
 * Rounding takes no dispatch of its own: it happens on the way to workgroup memory, anew in every
 * workgroup.
 */
import { unroll } from "../kernel.ts";
import { decoder, PACKED } from "../packed.ts";
import type { MatmulParameters, Summation } from "./matmul_parameters.ts";

/** Columns that share a scale of the activations. */
export const BLOCK = 32;
const VECTORS = BLOCK / 4;

/** Whether products are summed in integers: where that is asked for, and levels are integers. */
export const isInteger = (
  { type, arithmetic }: Pick<MatmulParameters, "type" | "arithmetic">,
): boolean => arithmetic === "int8" && decoder(type).integers !== undefined;

/** @param suffix Of the buffers with the weights. */
export function integerSums(parameters: MatmulParameters, suffix: string): Summation {
  return {
    block: BLOCK,
    lanes: 8,
    staging: { bytes: BLOCK + 12, memory: (slots) => memory(parameters, slots) },
    products: (slots, at) => products(parameters, suffix, slots, at),
  };
}

function memory({ columns, norm }: MatmulParameters, slots: number): string {
  const normed = norm !== undefined;
  const half = (h: number) =>
    [0, 1, 2, 3].map((i) => `pack4xI8(vec4<i32>(round(x${4 * h + i} * inverse)))`).join(", ");
  const counts = [0, 1].flatMap((h) =>
    [..."xyzw"].map((c) => `dot4I8Packed(half${h}.${c}, 0x01010101u)`)
  );
  const square = (given: string) =>
    [..."xyzw"].map((c) => `square = fma(${given}.${c}, ${given}.${c}, square);`).join(" ");
  return `
/** Bytes of a block, in two arrays of its halves. */
var<workgroup> halves: array<vec4<u32>, ${2 * slots}>;
/** What a unit of these bytes is, and what all 32 add up to. */
var<workgroup> units: array<vec2<f32>, ${slots}>;
fn stage(to: u32, token: u32, block: u32) {
  let start = token * ${columns / 4}u + block * ${VECTORS}u;
  // Compared as integers, so that a NaN is the largest of all and reaches the sums.
  var largest = vec4<u32>(0u);
  ${normed ? "var square = 0.0;" : ""}
  ${
    unroll(VECTORS, (i) => `
  let given${i} = x[start + ${i}u];
  let x${i} = given${i}${normed ? ` * gain[block * ${VECTORS}u + ${i}u]` : ""};
  largest = max(largest, bitcast<vec4<u32>>(x${i}) & vec4<u32>(0x7fffffffu));
  ${normed ? square(`given${i}`) : ""}`)
  }
  let most = bitcast<f32>(max(max(largest.x, largest.y), max(largest.z, largest.w)));
  let inverse = select(0.0, 127.0 / most, most > 1e-30);
  let half0 = vec4<u32>(${half(0)});
  let half1 = vec4<u32>(${half(1)});
  halves[to] = half0;
  halves[${slots}u + to] = half1;
  let unit = most / 127.0;
  units[to] = vec2<f32>(unit, unit * f32(${counts.join(" + ")}));
  ${normed ? "block_squares[to] = square;" : ""}
}
`;
}

function products(
  { type, tile: { tokens, rows } }: MatmulParameters,
  suffix: string,
  slots: number,
  at: (token: number) => string,
): string {
  const weights = decoder(type, suffix);
  const { load, scales = () => "vec2<f32>(1.0, 0.0)", integers = () => "0u" } = weights;
  const layout = PACKED[type].scales;
  // Where both halves have scales of their own, each joins by itself.
  const apart = layout === "bytes256";
  const hasMinima = layout === "pair" || layout === "pairs256";
  const eachPair = (text: (r: number, t: number) => string) =>
    unroll(rows, (r) => unroll(tokens, (t) => text(r, t)));
  const group = (r: number, h: number) => `(row${r} + block) * 2u + ${h}u`;
  const dots = (r: number) =>
    [..."xyzw"].map((c, i) => `dot4I8Packed(w${r}_${i}, x.${c})`).join(" + ");
  const begin = eachPair((r, t) => `var dot${r}_${t} = 0;`);
  const half = (h: number) =>
    `{
      ${unroll(rows, (r) => load(`q${r}`, group(r, h)))}
      ${unroll(rows, (r) => unroll(4, (i) => `let w${r}_${i} = ${integers(`q${r}`, i)};`))}
      ${
      unroll(tokens, (t) =>
        `{
      let x = halves[${h * slots}u + ${at(t)}];
      ${unroll(rows, (r) => `dot${r}_${t} += ${dots(r)};`)}
      }`)
    }
      }`;
  const join = (h: number) => `
      ${unroll(rows, (r) => `let scale${r} = ${scales(group(r, h))};`)}
      ${
    eachPair((r, t) => {
      const sum = `sum${r}_${t}`;
      const before = hasMinima ? `fma(scale${r}.y, unit${t}.y, ${sum})` : sum;
      return `${sum} = fma(scale${r}.x, unit${t}.x * f32(dot${r}_${t}), ${before});`;
    })
  }`;
  return `
      ${unroll(tokens, (t) => `let unit${t} = units[${at(t)}];`)}
      ${
    apart
      ? unroll(2, (h) => `{ ${begin} ${half(h)} ${join(h)} }`)
      : `${begin} ${half(0)} ${half(1)} ${join(0)}`
  }`;
}
