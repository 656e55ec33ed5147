/** WGSL for sums and maxima over a workgroup of `RANK_WORKGROUP` threads, always in the same order. */
import { RANK_WORKGROUP } from "./rank.ts";

const reduction = (name: string, combine: (a: string, b: string) => string) => `
fn ${name}(thread: u32, own: f32) -> f32 {
  workgroupBarrier();
  reduced[thread] = own;
  for (var half = ${RANK_WORKGROUP / 2}u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) {
      reduced[thread] = ${combine("reduced[thread]", "reduced[thread + half]")};
    }
  }
  workgroupBarrier();
  return reduced[0];
}
`;

/** `largest_of_all` and `sum_of_all`, to be called in uniform control flow. */
export const REDUCE_FUNCTIONS = `
var<workgroup> reduced: array<f32, ${RANK_WORKGROUP}>;
${reduction("largest_of_all", (a, b) => `max(${a}, ${b})`)}
${reduction("sum_of_all", (a, b) => `${a} + ${b}`)}
`;
