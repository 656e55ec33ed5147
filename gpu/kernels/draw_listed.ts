/**
 * WGSL that draws among the most likely tokens of a row, which its summary lists in rank order: as the
 * engine's sampler does, on what is known of the tokens behind them.
 */
import { LOWEST } from "./row_chunks.ts";

/** The log of a min_p that keeps all. */
export const KEEPS_ALL = -1e30;

/**
 * Declares `take_list`, `kept_of_list` and `rank_in_list`.
 *
 * @param topK Length of the list.
 */
export function drawListed(
  { vocabulary, topK }: { readonly vocabulary: number; readonly topK: number },
): string {
  return `
/** Logits of the list, and masses relative to the best: at temperature 1, and at the draw's own. */
var<workgroup> listed: array<f32, ${topK}>;
var<workgroup> plain_mass: array<f32, ${topK}>;
var<workgroup> own_mass: array<f32, ${topK}>;

/** Fills them from the summary, whose ids begin at \`ids\`. */
fn take_list(thread: u32, ids: u32, largest: f32, inverse: f32) {
  if (thread < ${topK}u) {
    let logit = bitcast<f32>(summary[ids + ${topK}u + thread]);
    let possible = ordered(logit) > IMPOSSIBLE;
    listed[thread] = logit;
    plain_mass[thread] = select(0.0, exp(logit - largest), possible);
    own_mass[thread] = select(0.0, exp((logit - largest) * inverse), possible);
  }
  workgroupBarrier();
}

/**
 * How many ranks the filters keep: some of the list, or all ${vocabulary}; 0 where that depends on
 * tokens behind the list. For one thread.
 *
 * @param z Mass of all, at temperature 1.
 */
fn kept_of_list(draw: Draw, largest: f32, z: f32) -> u32 {
  var kept = ${vocabulary}u;
  if (draw.top_k > 0u) {
    kept = min(kept, draw.top_k);
    if (kept > ${topK}u && kept < ${vocabulary}u) {
      return 0u;
    }
  }
  if (draw.top_p < 1.0) {
    var wanted = draw.top_p * z;
    if (kept <= ${topK}u) {
      wanted = 0.0;
      for (var i = 0u; i < kept; i++) {
        wanted += draw.top_p * plain_mass[i];
      }
    }
    var reached = plain_mass[0];
    var count = 1u;
    while (count < min(kept, ${topK}u) && reached < wanted) {
      reached += plain_mass[count];
      count++;
    }
    if (reached >= wanted || kept <= ${topK}u) {
      kept = count;
    } else {
      return 0u;
    }
  }
  if (draw.log_min_p > ${KEEPS_ALL}) {
    let least = max(largest + draw.log_min_p, ${LOWEST});
    var count = 1u;
    while (count < min(kept, ${topK}u) && listed[count] >= least) {
      count++;
    }
    if (count < ${topK}u || kept <= ${topK}u) {
      kept = count;
    } else {
      return 0u;
    }
  }
  return kept;
}

/**
 * The rank at which the running mass passes u of what is kept; ${topK} where that lies behind the list.
 * For one thread.
 *
 * @param all Mass of all, at the draw's temperature, where all are kept.
 */
fn rank_in_list(u: f32, kept: u32, all: f32) -> u32 {
  var total = all;
  if (kept <= ${topK}u) {
    total = 0.0;
    for (var i = 0u; i < kept; i++) {
      total += own_mass[i];
    }
  }
  var running = 0.0;
  for (var i = 0u; i < min(kept, ${topK}u); i++) {
    running += own_mass[i];
    if (running > u * total) {
      return i;
    }
  }
  return ${topK}u;
}
`;
}
