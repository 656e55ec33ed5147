/**
 * Sums over chunks of 64 logits of a row, relative to the chunk's largest: with d = (z - max) / T,
 * Z = sum e^d, A = sum d e^d, B = sum d^2 e^d, from which `row_summary.ts` makes the statistics of the
 * row. A NaN or +Infinity makes Z -1, for shaders may take it that no number is NaN; -Infinity adds
 * nothing.
 */
import { type Kernel, read, uniform, unroll, write } from "../kernel.ts";

/** Logits of a chunk. */
export const CHUNK = 64;
const WORKGROUP = 256;
/** Threads of a chunk, each with as many neighbouring logits as fill it. */
const LANES = 16;
const EACH = CHUNK / LANES;
/** Chunks of a workgroup. */
export const CHUNKS_AT_ONCE = WORKGROUP / LANES;

export interface RowParameters {
  readonly vocabulary: number;
}

export const chunksOf = ({ vocabulary }: RowParameters): number => Math.ceil(vocabulary / CHUNK);

/** Below every float that a row is made of. */
export const LOWEST = "-3.4028234e38";

/** How a row is looked at. */
export const ROW_VIEW = `
struct RowView {
  /** The first row of the dispatch. */
  first: u32,
  inverse_temperature: f32,
};
`;

/** Dispatch: [chunks / CHUNKS_AT_ONCE, rows]. */
export function rowChunksKernel(parameters: RowParameters): Kernel {
  const { vocabulary } = parameters;
  const chunks = chunksOf(parameters);
  return {
    name: `row chunks ${vocabulary}`,
    bindings: [
      uniform("view", "RowView"),
      read("logits", "array<f32>"),
      write("chunks", "array<vec4<f32>>"),
    ],
    code: `
${ROW_VIEW}
var<workgroup> maxima: array<f32, ${WORKGROUP}>;
var<workgroup> sums: array<vec4<f32>, ${WORKGROUP}>;

@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let row = view.first + workgroup.y;
  let chunk = workgroup.x * ${CHUNKS_AT_ONCE}u + thread / ${LANES}u;
  let first = chunk * ${CHUNK}u + thread % ${LANES}u * ${EACH}u;
  var largest = ${LOWEST};
  var spoilt = false;
  ${
      unroll(EACH, (i) => `
  var z${i} = ${LOWEST};
  var counts${i} = false;
  if (first + ${i}u < ${vocabulary}u) {
    let bits = bitcast<u32>(logits[row * ${vocabulary}u + first + ${i}u]);
    let finite = (bits & 0x7f800000u) != 0x7f800000u;
    spoilt = spoilt || !(finite || bits == 0xff800000u);
    if (finite) {
      z${i} = bitcast<f32>(bits);
      counts${i} = true;
      largest = max(largest, z${i});
    }
  }`)
    }
  maxima[thread] = largest;
  workgroupBarrier();
  let leader = thread - thread % ${LANES}u;
  for (var i = 0u; i < ${LANES}u; i++) {
    largest = max(largest, maxima[leader + i]);
  }
  var sum = vec4<f32>(0.0, 0.0, 0.0, select(0.0, 1.0, spoilt));
  ${
      unroll(EACH, (i) => `
  if (counts${i}) {
    let d = (z${i} - largest) * view.inverse_temperature;
    let e = exp(d);
    sum += vec4<f32>(e, d * e, d * d * e, 0.0);
  }`)
    }
  sums[thread] = sum;
  workgroupBarrier();
  if (thread % ${LANES}u == 0u && chunk < ${chunks}u) {
    var total = vec4<f32>(0.0);
    for (var i = 0u; i < ${LANES}u; i++) {
      total += sums[thread + i];
    }
    let z = select(total.x, -1.0, total.w > 0.0);
    chunks[row * ${chunks}u + chunk] = vec4<f32>(largest, z, total.y, total.z);
  }
}
`,
  };
}
