/** Gathers the embeddings of a step's tokens: rows of a packed matrix, as floats. */
import type { TensorType } from "../../core/model/tensors.ts";
import { type Kernel, PART, read, STEP, uniform, unroll, write } from "../kernel.ts";
import { decoder, GROUP } from "../packed.ts";
import { TOKEN } from "../step_input.ts";

export interface EmbedParameters {
  readonly type: TensorType;
  readonly columns: number;
}

/** Groups that a workgroup decodes at once. */
export const EMBED_WORKGROUP = 64;

/** Dispatch: [1, tokens]. Tokens whose row is in another part of the matrix are left alone. */
export function embedKernel({ type, columns }: EmbedParameters): Kernel {
  const groups = columns / GROUP;
  const { quantsType, functions, load, levels, scales } = decoder(type);
  return {
    name: `embed ${type} ${columns}`,
    bindings: [
      read("quants", quantsType),
      read("scales", "array<u32>"),
      uniform("part", "Part"),
      uniform("step", "Step"),
      read("tokens", "array<Token>"),
      write("hidden", "array<vec4<f32>>"),
    ],
    code: `
${STEP}${PART}${TOKEN}${functions}
@compute @workgroup_size(${EMBED_WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let row = tokens[workgroup.y].id - part.first;
  if (workgroup.y >= step.count || row >= part.rows) {
    return;
  }
  for (var group = thread; group < ${groups}u; group += ${EMBED_WORKGROUP}u) {
    let at = row * ${groups}u + group;
    let to = (workgroup.y * ${groups}u + group) * 4u;
    ${load("q", "at")}
    ${scales ? `let scale = ${scales("at")};` : ""}
    ${
      unroll(4, (i) => {
        const level = levels("q", i);
        const value = scales ? `fma(${level}, vec4<f32>(scale.x), vec4<f32>(scale.y))` : level;
        return `hidden[to + ${i}u] = ${value};`;
      })
    }
  }
}
`,
  };
}
