/** Collects single logits of a row, so that nobody has to read the others. */
import { type Kernel, read, uniform, write } from "../kernel.ts";

const WORKGROUP = 64;

/** Dispatch: [`pickGroups`]. */
export function pickKernel(): Kernel {
  return {
    name: "pick",
    bindings: [
      read("ids", "array<u32>"),
      uniform("count", "u32"),
      read("row", "array<f32>"),
      write("picked", "array<f32>"),
    ],
    code: `
@compute @workgroup_size(${WORKGROUP})
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
  if (thread.x < count) {
    picked[thread.x] = row[ids[thread.x]];
  }
}
`,
  };
}

export const pickGroups = (count: number): number => Math.ceil(count / WORKGROUP);
