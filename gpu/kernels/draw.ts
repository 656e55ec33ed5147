/**
 * Draws a token from each row, as `Draw` of the contract says, one workgroup a row: among the most
 * likely tokens, which the row's summary lists, or where these do not settle it in the whole row.
 */
import type { Draw } from "../../core/engine/backend.ts";
import { type Kernel, read, write } from "../kernel.ts";
import { drawListed, KEEPS_ALL } from "./draw_listed.ts";
import { drawSearch } from "./draw_search.ts";
import { RANK_FUNCTIONS, RANK_WORKGROUP } from "./rank.ts";
import { REDUCE_FUNCTIONS } from "./reduce.ts";
import type { RowParameters } from "./row_chunks.ts";
import { SUMMARY_DRAWN, SUMMARY_HEADER, summaryWords } from "./row_summary.ts";

export interface DrawParameters extends RowParameters {
  /** Length of a summary's list. */
  readonly topK: number;
}

/** What a draw asks for; words in this order. */
const DRAW = `
struct Draw {
  /** 0 keeps all. */
  top_k: u32,
  /** 1 or more keeps all. */
  top_p: f32,
  /** Log of the least share of the best token's probability. */
  log_min_p: f32,
  /** 0 leaves the row with the best token. */
  inverse_temperature: f32,
  u: f32,
};

/** A row of logits. */
struct Row {
  first: u32,
  largest: f32,
};

/** The key of -Infinity: none that is drawn has it. */
const IMPOSSIBLE = 0x007fffffu;
`;
export const DRAW_WORDS = 5;

/** The largest share that is below 1 by more than a product with it is rounded. */
const MOST = 1 - 2 ** -23;

/** Draws as the kernel takes them, one a row; a row that nothing is drawn from is left alone. */
export function drawWords(draws: readonly (Draw | undefined)[]): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(draws.length * DRAW_WORDS);
  const floats = new Float32Array(words.buffer);
  for (const [row, draw] of draws.entries()) {
    if (draw === undefined) continue;
    const { topK, topP, minP, temperature, u } = draw;
    const inverse = temperature === 0 ? 0 : Math.min(1 / temperature, 3e38);
    words[row * DRAW_WORDS] = topK;
    floats.set(
      [topP, Math.max(Math.log(minP), KEEPS_ALL), inverse, Math.min(u, MOST)],
      row * DRAW_WORDS + 1,
    );
  }
  return words;
}

/** Dispatch: [rows]. */
export function drawKernel({ vocabulary, topK }: DrawParameters): Kernel {
  const words = summaryWords(topK);
  return {
    name: `draw ${vocabulary} ${topK}`,
    bindings: [
      read("draws", "array<Draw>"),
      read("logits", "array<f32>"),
      write("summary", "array<u32>"),
    ],
    code: `
${DRAW}${RANK_FUNCTIONS}${REDUCE_FUNCTIONS}
${drawListed({ vocabulary, topK })}${drawSearch({ vocabulary })}
/** What thread 0 tells the others. */
var<workgroup> told: u32;

@compute @workgroup_size(${RANK_WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let draw = draws[workgroup.x];
  if (draw.inverse_temperature == 0.0) {
    return;
  }
  let to = workgroup.x * ${words}u;
  let row = Row(workgroup.x * ${vocabulary}u, bitcast<f32>(summary[to]));
  take_list(thread, to + ${SUMMARY_HEADER}u, row.largest, draw.inverse_temperature);
  if (thread == 0u) {
    told = kept_of_list(draw, row.largest, bitcast<f32>(summary[to + 1u]));
  }
  let kept = workgroupUniformLoad(&told);
  var rank = ${topK}u;
  if (kept > 0u) {
    var all = bitcast<f32>(summary[to + 1u]);
    if (kept > ${topK}u && draw.inverse_temperature != 1.0) {
      all = mass_from(thread, 0u, ALL_RANKS, row, draw.inverse_temperature);
    }
    if (thread == 0u) {
      told = rank_in_list(draw.u, kept, all);
    }
    rank = workgroupUniformLoad(&told);
  }
  var id = 0u;
  if (rank < ${topK}u) {
    id = summary[to + ${SUMMARY_HEADER}u + rank];
  } else {
    id = search(thread, row, draw);
  }
  if (thread == 0u && id < ${vocabulary}u) {
    let logit = logits[row.first + id];
    if (ordered(logit) > IMPOSSIBLE) {
      summary[to + ${SUMMARY_DRAWN}u] = id;
      summary[to + ${SUMMARY_DRAWN + 1}u] = bitcast<u32>(logit);
    }
  }
}
`,
  };
}
