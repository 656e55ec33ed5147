/**
 * Multiplies a packed matrix with the activations of a tile of tokens, and does to each product what
 * the layer does next: `y[t][r] = sum over k of W[r][k] x[t][k]`.
 *
 * Sixteen lanes share a row: lane l takes the groups l, l + 16, …, and the sixteen partial sums are
 * added in order. A thread keeps a small tile of rows and tokens in registers, so that weights are
 * decoded once for all tokens of a tile, and activations read once for all its rows. Whatever the
 * tile, a product is made of the same operations in the same order: so a token's result never depends
 * on its neighbours. Every multiply-add is written as `fma`, lest one tile's compiler fuse what
 * another's does not.
 */
import type { TensorType } from "../../core/model/tensors.ts";
import { type Kernel, PART, read, STEP, uniform, unroll, write } from "../kernel.ts";
import { decoder, GROUP } from "../packed.ts";

export interface MatmulParameters {
  readonly type: TensorType;
  readonly columns: number;
  /**
   * What becomes of the products: `store` them; `add` them to the residual stream; or `swiglu`, where
   * rows alternate between gate and up projection and each pair becomes silu(gate) * up.
   */
  readonly output: "store" | "add" | "swiglu";
  /** Whether the input is normalised on the way (RMSNorm, arXiv 1910.07467), with this epsilon. */
  readonly norm?: number;
  /** Tokens of a tile. */
  readonly tile: number;
  /** Rows that a thread keeps; even, for pairs of gate and up. */
  readonly rows: number;
}

/** Tile sizes that are made, ascending. */
export const TILES = [1, 4, 8] as const;

const WORKGROUP = 64;
const LANES = 16;

/** Rows of a workgroup. */
export const rowsAtOnce = ({ rows }: Pick<MatmulParameters, "rows">): number =>
  WORKGROUP / LANES * rows;

/**
 * How many rows a thread should keep: more make better use of each activation that is read, fewer
 * spread a small matrix over more of the GPU.
 */
export const rowsOfThread = (matrixRows: number, tile: number): number =>
  tile > 1 || matrixRows >= 2048 ? 4 : 2;

/** Dispatch: [rows of the part / rowsAtOnce, tokens / tile], rounded up. */
export function matmulKernel(parameters: MatmulParameters): Kernel {
  const { type, columns, output, norm, tile, rows } = parameters;
  const atOnce = rowsAtOnce(parameters);
  const normed = norm !== undefined;
  return {
    name: `matmul ${type} ${columns} ${output}${normed ? ` norm ${norm}` : ""} ${rows}x${tile}`,
    bindings: [
      read("quants", decoder(type).quantsType),
      read("scales", "array<u32>"),
      uniform("part", "Part"),
      uniform("step", "Step"),
      uniform("width", "u32"),
      read("x", "array<vec4<f32>>"),
      write("y", "array<f32>"),
      ...(normed ? [read("gain", "array<vec4<f32>>")] : []),
      ...(output === "add" ? [read("residual", "array<f32>"), read("sources", "array<u32>")] : []),
    ],
    code: `
${STEP}${PART}${decoder(type).functions}
var<workgroup> sums: array<f32, ${atOnce * tile * LANES}>;
${normed ? `var<workgroup> squares: array<f32, ${tile * LANES}>;` : ""}
@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let lane = thread % ${LANES}u;
  let first_row = workgroup.x * ${atOnce}u;
  let first_token = workgroup.y * ${tile}u;
  ${accumulate(parameters)}
  workgroupBarrier();
  ${finish(parameters)}
}
`,
  };
}

/** Each lane's part of the sums, left in `sums` as [row][token][lane]. */
function accumulate(parameters: MatmulParameters): string {
  const { type, columns, norm, tile, rows } = parameters;
  const groups = columns / GROUP;
  const { load, scales } = decoder(type);
  const each = (count: number, text: (i: number) => string) => unroll(count, text);
  const eachPair = (text: (r: number, t: number) => string) =>
    each(rows, (r) => each(tile, (t) => text(r, t)));
  // Rows and tokens beyond the end are read as the last one, and never written.
  return `
  let thread_row = thread / ${LANES}u * ${rows}u;
  ${
    each(rows, (r) =>
      `let row${r} = min(first_row + thread_row + ${r}u, part.rows - 1u) * ${groups}u;`)
  }
  ${
    each(tile, (t) =>
      `let token${t} = min(first_token + ${t}u, step.count - 1u) * ${groups * 4}u;`)
  }
  ${eachPair((r, t) => `var sum${r}_${t} = 0.0;`)}
  ${norm === undefined ? "" : each(tile, (t) => `var square${t} = 0.0;`)}
  for (var group = lane; group < ${groups}u; group += ${LANES}u) {
    ${each(rows, (r) => load(`q${r}`, `row${r} + group`))}
    ${eachPair((r, t) => `var dot${r}_${t} = ${scales ? "0.0" : `sum${r}_${t}`};`)}
    ${scales ? each(tile, (t) => `var total${t} = 0.0;`) : ""}
    ${each(4, (i) => `{${dots(parameters, i)}}`)}
    ${scales ? each(rows, (r) => `let scale${r} = ${scales(`row${r} + group`)};`) : ""}
    ${
    eachPair((r, t) => {
      const [sum, dot] = [`sum${r}_${t}`, `dot${r}_${t}`];
      return scales
        ? `${sum} = fma(scale${r}.x, ${dot}, fma(scale${r}.y, total${t}, ${sum}));`
        : `${sum} = ${dot};`;
    })
  }
  }
  ${
    eachPair((r, t) =>
      `sums[((thread_row + ${r}u) * ${tile}u + ${t}u) * ${LANES}u + lane] = sum${r}_${t};`
    )
  }
  ${
    norm === undefined ? "" : `if (thread < ${LANES}u) {
    ${each(tile, (t) => `squares[${t * LANES}u + lane] = square${t};`)}
  }`
  }`;
}

/** The products of vector `i` of a group. */
function dots({ type, norm, tile, rows }: MatmulParameters, i: number): string {
  const { levels, scales } = decoder(type);
  const chain = (a: string, b: string, sum: string) =>
    [..."xyzw"].map((c) => `${sum} = fma(${a}.${c}, ${b}.${c}, ${sum});`).join(" ");
  const at = `group * 4u + ${i}u`;
  const inputs = unroll(tile, (t) => {
    const given = `let given${t} = x[token${t} + ${at}];`;
    const x = `let x${t} = given${t}${norm === undefined ? "" : " * gain_of_vector"};`;
    const square = norm === undefined ? "" : chain(`given${t}`, `given${t}`, `square${t}`);
    const total = scales && chain(`given${t}`, "gain_of_vector", `total${t}`);
    return `${given} ${x} ${square} ${total ?? ""}`;
  });
  const products = unroll(rows, (r) =>
    `{
      let level = ${levels(`q${r}`, i)};
      ${unroll(tile, (t) => chain("level", `x${t}`, `dot${r}_${t}`))}
    }`);
  const gain = norm === undefined ? "vec4<f32>(1.0)" : `gain[${at}]`;
  return `
    let gain_of_vector = ${gain};
    ${inputs}
    ${products}`;
}

/** Adds the lanes' parts in order, a thread an output, and writes it where it belongs. */
function finish(parameters: MatmulParameters): string {
  const { columns, output, norm, tile } = parameters;
  const perOutput = output === "swiglu" ? 2 : 1;
  const outputs = rowsAtOnce(parameters) / perOutput * tile;
  const sum = (name: string, row: string) => `
    var ${name} = 0.0;
    for (var i = 0u; i < ${LANES}u; i++) {
      ${name} += sums[(${row} * ${tile}u + t) * ${LANES}u + i];
    }`;
  const scaled = (name: string) => norm === undefined ? name : `(${name} * inverse)`;
  const value = {
    store: scaled("product"),
    add: `residual[sources[token] * width + at] + ${scaled("product")}`,
    swiglu: `${scaled("product")} / (1.0 + exp(-${scaled("product")})) * ${scaled("up")}`,
  }[output];
  return `
  for (var i = thread; i < ${outputs}u; i += ${WORKGROUP}u) {
    let t = i % ${tile}u;
    let token = first_token + t;
    let row = i / ${tile}u * ${perOutput}u;
    if (token >= step.count || first_row + row >= part.rows) {
      continue;
    }
    let at = (part.first + first_row + row) / ${perOutput}u;
    ${sum("product", "row")}
    ${output === "swiglu" ? sum("up", "(row + 1u)") : ""}
    ${
    norm === undefined ? "" : `
    var square = 0.0;
    for (var i = 0u; i < ${LANES}u; i++) {
      square += squares[t * ${LANES}u + i];
    }
    let inverse = inverseSqrt(square / ${columns}.0 + ${norm});`
  }
    y[token * width + at] = ${value};
  }`;
}
