/** Single logits of a row, by their ids: put in place of the model's, or collected to be read. */
import { type Kernel, read, uniform, write } from "../kernel.ts";

const WORKGROUP = 64;

/** Workgroups for so many ids. */
export const idGroups = (count: number): number => Math.ceil(count / WORKGROUP);

/** Dispatch: [`idGroups`]. */
export function overrideKernel(): Kernel {
  return {
    name: "override",
    bindings: [
      read("ids", "array<u32>"),
      read("given", "array<f32>"),
      uniform("count", "u32"),
      write("row", "array<f32>"),
    ],
    code: forEachId("row[ids[i]] = given[i];"),
  };
}

/** Dispatch: [`idGroups`]. */
export function pickKernel(): Kernel {
  return {
    name: "pick",
    bindings: [
      read("ids", "array<u32>"),
      uniform("count", "u32"),
      read("row", "array<f32>"),
      write("picked", "array<f32>"),
    ],
    code: forEachId("picked[i] = row[ids[i]];"),
  };
}

const forEachId = (statement: string): string => `
@compute @workgroup_size(${WORKGROUP})
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
  let i = thread.x;
  if (i < count) {
    ${statement}
  }
}
`;
