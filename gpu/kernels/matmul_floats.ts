/**
 * Sums in floats, a group of 16 columns at a time. Activations come from workgroup memory, or straight
 * from their buffer; the operations on them are the same. Every multiply-add is written as `fma`, lest
 * one compiler fuse what another does not.
 */
import { unroll } from "../kernel.ts";
import { decoder, GROUP } from "../packed.ts";
import type { MatmulParameters, Summation } from "./matmul_parameters.ts";

const VECTORS = GROUP / 4;

/** @param suffix Of the buffers with the weights. */
export function floatSums(parameters: MatmulParameters, suffix: string): Summation {
  const staging = {
    bytes: 4 * GROUP + 8,
    memory: (slots: number) => memory(parameters, slots),
  };
  return {
    block: GROUP,
    lanes: 16,
    ...(parameters.tile.staged && { staging }),
    products: (slots, at) => products(parameters, suffix, slots, at),
  };
}

const chain = (a: string, b: string, sum: string): string =>
  [..."xyzw"].map((c) => `${sum} = fma(${a}.${c}, ${b}.${c}, ${sum});`).join(" ");

/** Declares what `read` adds to. */
const totals = ({ type, norm }: MatmulParameters, t: number | "_"): string => `
      ${norm === undefined ? "" : `var block_square${t} = 0.0;`}
      ${decoder(type).scales ? `var total${t} = 0.0;` : ""}`;

/**
 * Reads a token's vector that lies at `at`, multiplied with the norm's gain, as `x{t}`. Its elements are
 * added up, and, before the gain, their squares.
 */
function read({ type, norm }: MatmulParameters, t: number | "_", at: string): string {
  const normed = norm !== undefined;
  return `
      let given${t} = x[${at}];
      let x${t} = given${t}${normed ? " * gain_of_vector" : ""};
      ${normed ? chain(`given${t}`, `given${t}`, `block_square${t}`) : ""}
      ${decoder(type).scales ? chain(`given${t}`, "gain_of_vector", `total${t}`) : ""}`;
}

/** Declares the gain of vector `i` of the block. */
const gain = ({ norm }: MatmulParameters, i: number): string =>
  `let gain_of_vector = ${
    norm === undefined ? "vec4<f32>(1.0)" : `gain[block * ${VECTORS}u + ${i}u]`
  };`;

function memory(parameters: MatmulParameters, slots: number): string {
  const { type, columns, norm } = parameters;
  const { scales } = decoder(type);
  return `
var<workgroup> activations: array<vec4<f32>, ${VECTORS * slots}>;
${scales ? `var<workgroup> totals: array<f32, ${slots}>;` : ""}
fn stage(to: u32, token: u32, block: u32) {
  let start = token * ${columns / 4}u + block * ${VECTORS}u;
  ${totals(parameters, "_")}
  ${
    unroll(VECTORS, (i) =>
      `{
      ${gain(parameters, i)}
      ${read(parameters, "_", `start + ${i}u`)}
      activations[${i * slots}u + to] = x_;
  }`)
  }
  ${norm === undefined ? "" : "block_squares[to] = block_square_;"}
  ${scales ? "totals[to] = total_;" : ""}
}
`;
}

function products(
  parameters: MatmulParameters,
  suffix: string,
  slots: number,
  at: (token: number) => string,
): string {
  const { type, tile: { tokens, rows, staged } } = parameters;
  const { load, levels, scales } = decoder(type, suffix);
  const eachPair = (text: (r: number, t: number) => string) =>
    unroll(rows, (r) => unroll(tokens, (t) => text(r, t)));
  const input = (i: number, t: number) =>
    staged
      ? `let x${t} = activations[${i * slots}u + ${at(t)}];`
      : read(parameters, t, `${at(t)} + ${i}u`);
  return `
      ${unroll(rows, (r) => load(`q${r}`, `row${r} + block`))}
      ${eachPair((r, t) => `var dot${r}_${t} = ${scales ? "0.0" : `sum${r}_${t}`};`)}
      ${staged ? "" : unroll(tokens, (t) => totals(parameters, t))}
      ${
    unroll(VECTORS, (i) =>
      `{
      ${staged ? "" : gain(parameters, i)}
      ${unroll(tokens, (t) => input(i, t))}
      ${
        unroll(rows, (r) =>
          `{
      let level = ${levels(`q${r}`, i)};
      ${unroll(tokens, (t) => chain("level", `x${t}`, `dot${r}_${t}`))}
      }`)
      }
      }`)
  }
      ${scales && staged ? unroll(tokens, (t) => `let total${t} = totals[${at(t)}];`) : ""}
      ${scales ? unroll(rows, (r) => `let scale${r} = ${scales(`row${r} + block`)};`) : ""}
      ${
    eachPair((r, t) => {
      const [sum, dot] = [`sum${r}_${t}`, `dot${r}_${t}`];
      return scales
        ? `${sum} = fma(scale${r}.x, ${dot}, fma(scale${r}.y, total${t}, ${sum}));`
        : `${sum} = ${dot};`;
    })
  }`;
}
