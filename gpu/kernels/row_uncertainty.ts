/** Joins the sums of a row's chunks at another temperature: maximum, Z, A and B, for `tempered`. */
import { type Kernel, read, uniform, write } from "../kernel.ts";
import { RANK_WORKGROUP } from "./rank.ts";
import { chunksOf, ROW_VIEW, type RowParameters } from "./row_chunks.ts";
import { joinChunks } from "./row_summary.ts";

/** Dispatch: [1]. */
export function rowUncertaintyKernel(parameters: RowParameters): Kernel {
  return {
    name: `row uncertainty ${parameters.vocabulary}`,
    bindings: [
      uniform("view", "RowView"),
      read("chunks", "array<vec4<f32>>"),
      write("uncertainty", "array<vec4<f32>>"),
    ],
    code: `
${ROW_VIEW}
var<workgroup> joined: array<vec4<f32>, ${RANK_WORKGROUP}>;

@compute @workgroup_size(${RANK_WORKGROUP})
fn main(@builtin(local_invocation_index) thread: u32) {
  let row = view.first;
  ${joinChunks(chunksOf(parameters))}
  if (thread == 0u) {
    uncertainty[0] = vec4<f32>(largest, z, sum.zw);
  }
}
`,
  };
}
