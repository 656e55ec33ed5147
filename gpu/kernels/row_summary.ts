/**
 * The statistics of a row of logits: joins the sums of its chunks, adds up the end tokens, and finds
 * the most likely ids. Those lie in the chunks with the largest maxima, so all others are left alone.
 */
import { type Kernel, read, uniform, write } from "../kernel.ts";
import { findBest, isBest, RANK_FUNCTIONS, RANK_WORKGROUP } from "./rank.ts";
import { CHUNK, chunksOf, LOWEST, ROW_VIEW, type RowParameters } from "./row_chunks.ts";

export interface SummaryParameters extends RowParameters {
  readonly topK: number;
  readonly endTokens: readonly number[];
}

/** Numbers before the ids of a row's summary: maximum, Z, A, B, end tokens' part of Z, drawn token. */
export const SUMMARY_HEADER = 7;
/** Of the token drawn and its logit in a row's summary: the best, until `draw` finds another. */
export const SUMMARY_DRAWN = 5;
/** Words of a row's summary: header, ids, their logits. */
export const summaryWords = (topK: number): number => SUMMARY_HEADER + 2 * topK;
/** Longest list of ids: a thread each. */
export const MOST_TOP_K = RANK_WORKGROUP;

/**
 * WGSL that joins the sums of all chunks of `row`: `largest`, `z`, and A and B as `sum.z` and `sum.w`.
 * The z of a row with a chunk that is spoilt is -1.
 */
export function joinChunks(chunks: number): string {
  return `
  var largest = ${LOWEST};
  for (var i = thread; i < ${chunks}u; i += ${RANK_WORKGROUP}u) {
    largest = max(largest, chunks[row * ${chunks}u + i].x);
  }
  joined[thread].x = largest;
  for (var half = ${RANK_WORKGROUP / 2}u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) {
      joined[thread].x = max(joined[thread].x, joined[thread + half].x);
    }
  }
  workgroupBarrier();
  largest = joined[0].x;
  workgroupBarrier();
  var sum = vec4<f32>(0.0);
  for (var i = thread; i < ${chunks}u; i += ${RANK_WORKGROUP}u) {
    let chunk = chunks[row * ${chunks}u + i];
    // Sums move to the row's maximum: d becomes d + shift.
    let shift = (chunk.x - largest) * view.inverse_temperature;
    let a = fma(shift, chunk.y, chunk.z);
    let b = fma(shift, fma(shift, chunk.y, 2.0 * chunk.z), chunk.w);
    let scale = exp(shift);
    // A chunk of nothing but -Infinity has the lowest float as its maximum.
    if (chunk.y > 0.0) {
      sum += vec4<f32>(0.0, chunk.y * scale, a * scale, b * scale);
    }
    sum.x += select(0.0, 1.0, chunk.y < 0.0);
  }
  joined[thread] = sum;
  for (var half = ${RANK_WORKGROUP / 2}u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (thread < half) {
      joined[thread] += joined[thread + half];
    }
  }
  workgroupBarrier();
  sum = joined[0];
  let z = select(sum.y, -1.0, sum.x > 0.0);`;
}

/** Dispatch: [rows]. */
export function rowSummaryKernel(parameters: SummaryParameters): Kernel {
  const { vocabulary, topK, endTokens } = parameters;
  const chunks = chunksOf(parameters);
  const kept = Math.min(topK, chunks);
  const idBits = Math.ceil(Math.log2(vocabulary + 1));
  const words = summaryWords(topK);
  // The chunk maxima and the logits of the chunks that are kept, as items to be ranked.
  const ofChunks = {
    count: `${chunks}u`,
    key: `ordered(chunks[row * ${chunks}u + i].x)`,
    id: "i",
    idBits: Math.ceil(Math.log2(chunks + 1)),
  };
  const ofLogits = {
    count: `${kept * CHUNK}u`,
    key: `key_of(row, i)`,
    id: "id_of(i)",
    idBits,
  };
  return {
    name: `row summary ${vocabulary} ${topK} ${endTokens.join()}`,
    bindings: [
      uniform("view", "RowView"),
      read("logits", "array<f32>"),
      read("chunks", "array<vec4<f32>>"),
      write("summary", "array<u32>"),
    ],
    code: `
${ROW_VIEW}${RANK_FUNCTIONS}
var<workgroup> joined: array<vec4<f32>, ${RANK_WORKGROUP}>;
var<workgroup> kept_chunks: array<u32, ${kept}>;
var<workgroup> best_keys: array<u32, ${topK}>;
var<workgroup> best_ids: array<u32, ${topK}>;
var<workgroup> kept_count: atomic<u32>;
var<workgroup> best_count: atomic<u32>;

fn id_of(i: u32) -> u32 {
  return kept_chunks[i / ${CHUNK}u] * ${CHUNK}u + i % ${CHUNK}u;
}

fn key_of(row: u32, i: u32) -> u32 {
  let id = id_of(i);
  if (id >= ${vocabulary}u) {
    return 0u;
  }
  return ordered(logits[row * ${vocabulary}u + id]);
}

@compute @workgroup_size(${RANK_WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let row = view.first + workgroup.x;
  let to = row * ${words}u;
  ${joinChunks(chunks)}
  if (thread == 0u) {
    summary[to] = bitcast<u32>(largest);
    summary[to + 1u] = bitcast<u32>(z);
    summary[to + 2u] = bitcast<u32>(sum.z);
    summary[to + 3u] = bitcast<u32>(sum.w);
    var end = 0.0;
    ${
      endTokens.map((id) => `end += exp(logits[row * ${vocabulary}u + ${id}u] - largest);`).join(
        "\n",
      )
    }
    summary[to + 4u] = bitcast<u32>(end);
  }
  ${findBest("chunk", ofChunks, `${kept}u`)}
  for (var i = thread; i < ${chunks}u; i += ${RANK_WORKGROUP}u) {
    let key = ${ofChunks.key};
    if (${isBest("chunk", "key", "i")}) {
      kept_chunks[atomicAdd(&kept_count, 1u)] = i;
    }
  }
  workgroupBarrier();
  ${findBest("best", ofLogits, `${topK}u`)}
  for (var i = thread; i < ${kept * CHUNK}u; i += ${RANK_WORKGROUP}u) {
    let key = ${ofLogits.key};
    let id = id_of(i);
    if (key != 0u && ${isBest("best", "key", "id")}) {
      let at = atomicAdd(&best_count, 1u);
      best_keys[at] = key;
      best_ids[at] = id;
    }
  }
  workgroupBarrier();
  if (thread < ${topK}u) {
    let key = best_keys[thread];
    let id = best_ids[thread];
    var rank = 0u;
    for (var i = 0u; i < ${topK}u; i++) {
      let better = best_keys[i] > key || (best_keys[i] == key && best_ids[i] < id);
      rank += select(0u, 1u, better);
    }
    let logit = bitcast<u32>(logits[row * ${vocabulary}u + id]);
    summary[to + ${SUMMARY_HEADER}u + rank] = id;
    summary[to + ${SUMMARY_HEADER + topK}u + rank] = logit;
    if (rank == 0u) {
      summary[to + ${SUMMARY_DRAWN}u] = id;
      summary[to + ${SUMMARY_DRAWN + 1}u] = logit;
    }
  }
}
`,
  };
}
