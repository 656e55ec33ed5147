/** Joins the splits that `attend.ts` leaves, in order: each counts by its largest score. */
import { BLOCK_SIZE } from "../../core/engine/backend.ts";
import { type Kernel, read, STEP, uniform, write } from "../kernel.ts";
import { TOKEN } from "../step_input.ts";
import {
  type AttendParameters,
  blocksRead,
  partialFloats,
  SLAB,
  SPLIT_BLOCKS,
  splitsOf,
} from "./attend.ts";

const WORKGROUP = 64;

/** Dispatch: [heads, queries of the slab]. */
export function mergeKernel(parameters: AttendParameters): Kernel {
  const { heads, kv: { kvHeads, headSize }, blocks, pruned } = parameters;
  const splits = splitsOf(parameters);
  const floats = partialFloats(headSize);
  return {
    name: `merge ${heads}/${kvHeads}x${headSize} ${blocks}${pruned ? " pruned" : ""}`,
    bindings: [
      uniform("step", "Step"),
      uniform("slab", "Slab"),
      read("queries", "array<u32>"),
      read("tokens", "array<Token>"),
      read("partials", "array<f32>"),
      write("attended", "array<f32>"),
      ...(pruned ? [read("chosen_blocks", "array<u32>")] : []),
    ],
    code: `
${STEP}${SLAB}${TOKEN}${blocksRead(parameters)}
@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let head = workgroup.x;
  let query = slab.first + workgroup.y;
  if (query >= step.count) {
    return;
  }
  let token = queries[query];
  let blocks = (tokens[token].position + ${BLOCK_SIZE}u) / ${BLOCK_SIZE}u;
  let read = blocks_read(workgroup.y, token, head / ${heads / kvHeads}u, blocks);
  let splits = (read + ${SPLIT_BLOCKS - 1}u) / ${SPLIT_BLOCKS}u;
  let begin = (workgroup.y * ${heads}u + head) * ${splits * floats}u;
  var largest = partials[begin];
  for (var i = 1u; i < splits; i++) {
    largest = max(largest, partials[begin + i * ${floats}u]);
  }
  for (var dimension = thread; dimension < ${headSize}u; dimension += ${WORKGROUP}u) {
    var total = 0.0;
    var sum = 0.0;
    for (var i = 0u; i < splits; i++) {
      let at = begin + i * ${floats}u;
      let scale = exp(partials[at] - largest);
      total = fma(partials[at + 1u], scale, total);
      sum = fma(partials[at + 2u + dimension], scale, sum);
    }
    attended[query * ${heads * headSize}u + head * ${headSize}u + dimension] = sum / total;
  }
}
`,
  };
}
