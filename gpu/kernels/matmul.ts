/**
 * Multiplies a packed matrix with the activations of a tile of tokens, and does to each product what
 * the layer does next: `y[t][r] = sum over k of W[r][k] x[t][k]`.
 *
 * Lanes share a row: lane l takes the blocks l, l + lanes, … of the columns, and the lanes' partial
 * sums are added in order. A thread keeps a small tile of rows and tokens in registers, so that
 * weights are decoded once for all its tokens, and activations read once for all its rows. Whatever
 * the tile, a product is made of the same operations in the same order: so a token's result never
 * depends on its neighbours.
 */
import type { Arithmetic } from "../../core/engine/arithmetic.ts";
import type { TensorType } from "../../core/model/tensors.ts";
import { type Binding, type Kernel, PART, read, STEP, uniform, unroll, write } from "../kernel.ts";
import { decoder } from "../packed.ts";
import { floatSums } from "./matmul_floats.ts";
import { integerSums, isInteger } from "./matmul_integers.ts";
import type { MatmulParameters, Summation } from "./matmul_parameters.ts";

/** Bytes of workgroup memory for activations, and for partial sums: they are added in rounds. */
const STAGED_BYTES = 9216;
const SUM_BYTES = 4096;

/** What the second matrix's names end in. */
const SECOND = "2";

const summationOf = (parameters: MatmulParameters, suffix = ""): Summation =>
  isInteger(parameters) ? integerSums(parameters, suffix) : floatSums(parameters, suffix);

/** Whether one kernel takes matrices of both types: it brings activations to either in one way. */
export function takesBoth(a: TensorType, b: TensorType, arithmetic: Arithmetic): boolean {
  const [integersA, integersB] = [a, b].map((type) => isInteger({ type, arithmetic }));
  const [scaledA, scaledB] = [a, b].map((type) => decoder(type).scales !== undefined);
  return integersA === integersB && scaledA === scaledB;
}

/** Rows of a workgroup; they are all of one matrix. */
export const rowsAtOnce = (parameters: MatmulParameters): number =>
  parameters.tile.threads / summationOf(parameters).lanes * parameters.tile.rows;

/** Blocks that are staged at once: some for each lane, of all tokens. */
function slotsOf(
  { columns, tile: { tokens } }: MatmulParameters,
  { block, lanes, staging }: Summation,
): number {
  const most = Math.floor(STAGED_BYTES / (tokens * lanes * (staging?.bytes ?? Infinity)));
  return tokens * lanes * Math.min(Math.ceil(columns / block / lanes), most);
}

/**
 * Dispatch: [rows of the part / rowsAtOnce, tokens / those of the tile], rounded up; of a second part,
 * the workgroups follow.
 */
export function matmulKernel(parameters: MatmulParameters): Kernel {
  const { type, second, columns, output, norm, tile } = parameters;
  const { tokens, rows, threads } = tile;
  const summation = summationOf(parameters);
  const { lanes, staging } = summation;
  const normed = norm !== undefined;
  const slots = slotsOf(parameters, summation);
  return {
    name: `matmul ${second ? `${type} ${second}` : type}${isInteger(parameters) ? " int8" : ""} ` +
      `${columns} ${output}${normed ? ` norm ${Number(norm.toPrecision(7))}` : ""} ` +
      `${rows}x${tokens}${staging ? " staged" : ""} by ${threads}`,
    bindings: [
      ...weightsOf(type, ""),
      ...(second ? weightsOf(second, SECOND) : []),
      uniform("step", "Step"),
      uniform("width", "u32"),
      read("x", "array<vec4<f32>>"),
      write("y", "array<f32>"),
      ...(normed ? [read("gain", "array<vec4<f32>>")] : []),
      ...(output === "add" ? [read("residual", "array<f32>"), read("sources", "array<u32>")] : []),
    ],
    code: `
${STEP}${PART}${decoder(type).functions}${second ? decoder(second, SECOND).functions : ""}
${staging && normed ? `var<workgroup> block_squares: array<f32, ${slots}>;` : ""}
${staging?.memory(slots) ?? ""}
${writeOutputs(parameters, summation)}
@compute @workgroup_size(${threads})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let lane = thread % ${lanes}u;
  let own_row = thread / ${lanes}u * ${rows}u;
  let first_token = workgroup.y * ${tokens}u;
  ${ownRows(parameters)}
  ${accumulate(parameters, summation, slots)}
  ${addLanes(parameters, summation)}
}
`,
  };
}

const weightsOf = (type: TensorType, suffix: string): readonly Binding[] => [
  read(`quants${suffix}`, decoder(type, suffix).quantsType),
  read(`scales${suffix}`, "array<u32>"),
  uniform(`part${suffix}`, "Part"),
];

/** Which part a workgroup's rows are of, and the first of them. */
function ownRows(parameters: MatmulParameters): string {
  const rows = rowsAtOnce(parameters);
  if (parameters.second === undefined) {
    return `
  let own_part = part;
  let first_row = workgroup.x * ${rows}u;`;
  }
  return `
  let groups = (part.rows + ${rows - 1}u) / ${rows}u;
  let is_second = workgroup.x >= groups;
  var own_part = part;
  if (is_second) {
    own_part = part${SECOND};
  }
  let first_row = (workgroup.x - select(0u, groups, is_second)) * ${rows}u;`;
}

/** A thread's part of the sums, and, where the input is normalised, of the squares. */
function accumulate(parameters: MatmulParameters, summation: Summation, slots: number): string {
  const { second, columns, norm, tile: { tokens, rows } } = parameters;
  const blocks = columns / summation.block;
  const loop = summation.staging ? stagedLoop : directLoop;
  const own = loop(parameters, summation, slots);
  // Rows and tokens beyond the end are read as the last one, and never written.
  return `
  ${
    unroll(
      rows,
      (r) => `let row${r} = min(first_row + own_row + ${r}u, own_part.rows - 1u) * ${blocks}u;`,
    )
  }
  ${unroll(rows, (r) => unroll(tokens, (t) => `var sum${r}_${t} = 0.0;`))}
  ${norm === undefined ? "" : unroll(tokens, (t) => `var square${t} = 0.0;`)}
  ${
    second === undefined ? own : `
  if (is_second) {
  ${loop(parameters, summationOf({ ...parameters, type: second }, SECOND), slots)}
  } else {
  ${own}
  }`
  }`;
}

/** Each lane reads the activations of its blocks from their buffer. */
function directLoop(parameters: MatmulParameters, { block, lanes, products }: Summation): string {
  const { columns, norm, tile: { tokens } } = parameters;
  return `
  ${
    unroll(tokens, (t) =>
      `let token${t} = min(first_token + ${t}u, step.count - 1u) * ${columns / 4}u;`)
  }
  for (var block = lane; block < ${columns / block}u; block += ${lanes}u) {
      ${products(0, (t) => `token${t} + block * ${block / 4}u`)}
      ${norm === undefined ? "" : unroll(tokens, (t) => `square${t} += block_square${t};`)}
  }`;
}

/** The workgroup brings activations to its memory, some columns at a time. */
function stagedLoop(parameters: MatmulParameters, summation: Summation, slots: number): string {
  const { columns, norm, tile: { tokens, threads } } = parameters;
  const { block, lanes, products } = summation;
  const blocks = columns / block;
  const staged = slots / tokens;
  const at = (token: number) => `slot + ${token * staged}u`;
  return `
  for (var first = 0u; first < ${blocks}u; first += ${staged}u) {
    let count = min(${blocks}u - first, ${staged}u);
    for (var i = thread; i < ${slots}u; i += ${threads}u) {
      if (i % ${staged}u < count) {
        stage(i, min(first_token + i / ${staged}u, step.count - 1u), first + i % ${staged}u);
      }
    }
    workgroupBarrier();
    for (var slot = lane; slot < count; slot += ${lanes}u) {
      let block = first + slot;
      ${products(slots, at)}
      ${norm === undefined ? "" : unroll(tokens, (t) => `square${t} += block_squares[${at(t)}];`)}
    }
    workgroupBarrier();
  }`;
}

/** Tokens whose lanes are added at once. */
const tokensOfRound = (parameters: MatmulParameters, { lanes }: Summation): number => {
  const most = Math.floor(SUM_BYTES / 4 / lanes / rowsAtOnce(parameters));
  return Math.max(1, Math.min(parameters.tile.tokens, most));
};

/** The threads' parts go through workgroup memory, some tokens at a time. */
function addLanes(parameters: MatmulParameters, summation: Summation): string {
  const { norm, tile: { tokens, rows } } = parameters;
  const { lanes } = summation;
  const atOnce = tokensOfRound(parameters, summation);
  const squares = `
  if (own_row == 0u) {
    ${unroll(tokens, (t) => `squares[${t * lanes}u + lane] = square${t};`)}
  }`;
  const round = (index: number) => `
  ${
    unroll(rows, (r) =>
      unroll(atOnce, (t) =>
        `sums[((own_row + ${r}u) * ${atOnce}u + ${t}u) * ${lanes}u + lane] = ` +
        `sum${r}_${index * atOnce + t};`))
  }
  workgroupBarrier();
  write_outputs(own_part, thread, first_row, first_token, ${index * atOnce}u);`;
  return `
  ${norm === undefined ? "" : squares}
  ${
    Array.from({ length: tokens / atOnce }, (_, index) => round(index))
      .join("\n  workgroupBarrier();")
  }`;
}

/** Adds the lanes' parts in order, a thread an output, and writes it where it belongs. */
function writeOutputs(parameters: MatmulParameters, summation: Summation): string {
  const { columns, output, norm, tile: { tokens, threads } } = parameters;
  const { lanes } = summation;
  const rows = rowsAtOnce(parameters);
  const atOnce = tokensOfRound(parameters, summation);
  const perOutput = output === "swiglu" ? 2 : 1;
  const sum = (name: string, row: string) => `
    var ${name} = 0.0;
    for (var l = 0u; l < ${lanes}u; l++) {
      ${name} += sums[(${row} * ${atOnce}u + slot) * ${lanes}u + l];
    }`;
  const scaled = (name: string) => norm === undefined ? name : `(${name} * inverse)`;
  const value = {
    store: scaled("product"),
    add: `residual[sources[token] * width + at] + ${scaled("product")}`,
    swiglu: `${scaled("product")} / (1.0 + exp(-${scaled("product")})) * ${scaled("up")}`,
  }[output];
  return `
/** Parts of the sums: [row][token of the round][lane]. */
var<workgroup> sums: array<f32, ${rows * atOnce * lanes}>;
${norm === undefined ? "" : `var<workgroup> squares: array<f32, ${tokens * lanes}>;`}
fn write_outputs(part: Part, thread: u32, first_row: u32, first_token: u32, round: u32) {
  for (var i = thread; i < ${rows / perOutput * atOnce}u; i += ${threads}u) {
    let slot = i % ${atOnce}u;
    let token = first_token + round + slot;
    let row = i / ${atOnce}u * ${perOutput}u;
    if (token >= step.count || first_row + row >= part.rows) {
      continue;
    }
    let at = (part.first + first_row + row) / ${perOutput}u;
    ${sum("product", "row")}
    ${output === "swiglu" ? sum("up", "(row + 1u)") : ""}
    ${
    norm === undefined ? "" : `
    var square = 0.0;
    for (var l = 0u; l < ${lanes}u; l++) {
      square += squares[(round + slot) * ${lanes}u + l];
    }
    let inverse = inverseSqrt(square / ${columns}.0 + ${norm});`
  }
    y[token * width + at] = ${value};
  }
}`;
}
