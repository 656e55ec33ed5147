/**
 * Adds up second moments of a step's keys and queries, rotated as if they stood at stretched
 * positions, before the step rotates them at their own. For each KV head: keys [head size], keys
 * squared [head size][head size], queries of the group squared alike.
 */
import { type Kernel, read, STEP, uniform, write } from "../kernel.ts";

export interface MomentsParameters {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Dimensions that are rotated, even. */
  readonly rotated: number;
}

const WORKGROUP = 64;

/** Floats of a KV head's sums. */
export const momentFloats = (headSize: number): number => headSize * (1 + 2 * headSize);

/** Dispatch: [head size, KV heads]: a workgroup a row of the squares. */
export function momentsKernel(parameters: MomentsParameters): Kernel {
  const { heads, kvHeads, headSize, rotated } = parameters;
  const group = heads / kvHeads;
  const width = (heads + 2 * kvHeads) * headSize;
  return {
    name: `moments ${heads}/${kvHeads}x${headSize} ${rotated}`,
    bindings: [
      uniform("step", "Step"),
      read("angles", "array<vec2<f32>>"),
      read("qkv", "array<f32>"),
      write("sums", "array<f32>"),
    ],
    code: `
${STEP}
/** A dimension of the head that begins at \`head\`, rotated. */
fn rotated(head: u32, dimension: u32, token: u32) -> f32 {
  let x = qkv[head + dimension];
  if (dimension >= ${rotated}u) {
    return x;
  }
  let other = qkv[head + (dimension ^ 1u)];
  let turn = angles[token * ${rotated / 2}u + dimension / 2u];
  return fma(x, turn.x, select(-other, other, (dimension & 1u) == 1u) * turn.y);
}

@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let row = workgroup.x;
  let kv_head = workgroup.y;
  for (var column = thread; column < ${headSize}u; column += ${WORKGROUP}u) {
    var mean = 0.0;
    var keys = 0.0;
    var queries = 0.0;
    for (var token = 0u; token < step.count; token++) {
      let key = token * ${width}u + (${heads}u + kv_head) * ${headSize}u;
      let k = rotated(key, column, token);
      mean += k;
      keys = fma(rotated(key, row, token), k, keys);
      for (var i = 0u; i < ${group}u; i++) {
        let query = token * ${width}u + (kv_head * ${group}u + i) * ${headSize}u;
        queries = fma(rotated(query, row, token), rotated(query, column, token), queries);
      }
    }
    let at = kv_head * ${momentFloats(headSize)}u + column;
    if (row == 0u) {
      sums[at] += mean;
    }
    sums[at + ${headSize}u + row * ${headSize}u] += keys;
    sums[at + ${headSize + headSize * headSize}u + row * ${headSize}u] += queries;
  }
}
`,
  };
}
