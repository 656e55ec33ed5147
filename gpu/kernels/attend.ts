/**
 * Paged attention: softmax(q k) v over the blocks of a token's table. Takes a split of at most 128
 * positions and leaves, for each query head, the largest score, the sum of the weights and the weighted
 * sum of the values; `merge.ts` joins the splits in order. Splits are counted from the first block that
 * is read, so what a token gets depends on nothing but its own context.
 *
 * Where a token's plan prunes, the blocks are those that `select.ts` chose.
 */
import { BLOCK_SIZE } from "../../core/engine/backend.ts";
import { type Kernel, read, STEP, uniform, unroll, write } from "../kernel.ts";
import { kvFunctions, type KvLayout, perWord, recordWords } from "../kv_layout.ts";
import { TOKEN } from "../step_input.ts";

export interface AttendParameters {
  readonly heads: number;
  readonly kv: KvLayout;
  /** Most blocks of a context. */
  readonly blocks: number;
  /** Whether plans may prune. */
  readonly pruned: boolean;
}

const WORKGROUP = 64;
/** Blocks of a split. */
export const SPLIT_BLOCKS = 8;
const SPLIT = SPLIT_BLOCKS * BLOCK_SIZE;
/** Most query heads that a workgroup takes: they share what it reads of the cache. */
const MOST_HEADS = 8;

/** Most splits of a context. */
export const splitsOf = ({ blocks }: Pick<AttendParameters, "blocks">): number =>
  Math.ceil(blocks / SPLIT_BLOCKS);

/**
 * Words that `select` leaves for a query and KV head of a pruned plan: how many blocks it chose, which,
 * in the cache's numbers, and room for two floats a block.
 */
export const chosenWords = (blocks: number): number => 1 + 3 * blocks;

/** Floats that a split leaves: maximum, sum, and the weighted values. */
export const partialFloats = (headSize: number): number => headSize + 2;

/** Query heads a workgroup, and workgroups that a KV head's group of queries needs. */
export function headTiles({ heads, kv: { kvHeads } }: AttendParameters) {
  const group = heads / kvHeads;
  const tile = Math.min(group, MOST_HEADS);
  return { group, tile, tiles: Math.ceil(group / tile) };
}

/** The first query of a dispatch, where the partial results of all do not fit at once. */
export const SLAB = `
struct Slab {
  first: u32,
};
`;

/** How many blocks a token's query reads, the `own`-th of the slab. */
export const blocksRead = ({ pruned, kv: { kvHeads }, blocks }: AttendParameters) =>
  pruned
    ? `
fn chosen_at(own: u32, kv_head: u32) -> u32 {
  return (own * ${kvHeads}u + kv_head) * ${chosenWords(blocks)}u;
}

fn blocks_read(own: u32, token: u32, kv_head: u32, blocks: u32) -> u32 {
  if (tokens[token].plan == 0u) {
    return blocks;
  }
  return chosen_blocks[chosen_at(own, kv_head)];
}
`
    : `
fn blocks_read(own: u32, token: u32, kv_head: u32, blocks: u32) -> u32 {
  return blocks;
}
`;

/** Dispatch: [splits, queries of the slab, KV heads * tiles]. */
export function attendKernel(parameters: AttendParameters): Kernel {
  const { heads, kv, blocks, pruned } = parameters;
  const splits = splitsOf(parameters);
  const { kvHeads, headSize } = kv;
  const { group, tile, tiles } = headTiles(parameters);
  const lanes = WORKGROUP / 2 ** Math.ceil(Math.log2(tile));
  const width = (heads + 2 * kvHeads) * headSize;
  return {
    name: `attend ${heads}/${kvHeads}x${headSize} ${kv.type} ${blocks}${pruned ? " pruned" : ""}`,
    bindings: [
      uniform("step", "Step"),
      uniform("slab", "Slab"),
      read("queries", "array<u32>"),
      read("tokens", "array<Token>"),
      read("tables", "array<u32>"),
      read("qkv", "array<f32>"),
      read("keys", "array<vec4<u32>>"),
      read("values", "array<u32>"),
      write("partials", "array<f32>"),
      ...(pruned ? [read("chosen_blocks", "array<u32>")] : []),
    ],
    code: `
${STEP}${SLAB}${TOKEN}${kvFunctions(kv)}${blocksRead(parameters)}
var<workgroup> q: array<vec4<f32>, ${tile * headSize / 4}>;
var<workgroup> scores: array<f32, ${tile * SPLIT}>;
var<workgroup> lane_values: array<f32, ${WORKGROUP}>;
var<workgroup> maxima: array<f32, ${tile}>;
var<workgroup> physical: array<u32, ${SPLIT_BLOCKS}>;
${valueParts(headSize) > 1 ? `var<workgroup> parts: array<f32, ${WORKGROUP * tile * 2}>;` : ""}

@compute @workgroup_size(${WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let split = workgroup.x;
  let query = slab.first + workgroup.y;
  if (query >= step.count) {
    return;
  }
  let token = queries[query];
  let kv_head = workgroup.z / ${tiles}u;
  let first_head = workgroup.z % ${tiles}u * ${tile}u;
  let context = tokens[token].position + 1u;
  let blocks = (context + ${BLOCK_SIZE - 1}u) / ${BLOCK_SIZE}u;
  let read = blocks_read(workgroup.y, token, kv_head, blocks);
  if (split * ${SPLIT_BLOCKS}u >= read) {
    return;
  }
  // Of the blocks that are read, all but the last are full.
  let positions = context - (blocks - read) * ${BLOCK_SIZE}u;
  let count = min(positions - split * ${SPLIT}u, ${SPLIT}u);

  if (thread < ${SPLIT_BLOCKS}u && split * ${SPLIT_BLOCKS}u + thread < read) {
    let logical = split * ${SPLIT_BLOCKS}u + thread;
    ${
      pruned
        ? `
    if (tokens[token].plan != 0u) {
      physical[thread] = chosen_blocks[chosen_at(workgroup.y, kv_head) + 1u + logical];
    } else {
      physical[thread] = tables[tokens[token].table + logical];
    }`
        : "physical[thread] = tables[tokens[token].table + logical];"
    }
  }
  let heads_here = min(${tile}u, ${group}u - first_head);
  let q_at = token * ${width}u + (kv_head * ${group}u + first_head) * ${headSize}u;
  for (var i = thread; i < heads_here * ${headSize / 4}u; i += ${WORKGROUP}u) {
    let at = q_at + 4u * i;
    q[i] = vec4<f32>(qkv[at], qkv[at + 1u], qkv[at + 2u], qkv[at + 3u]) *
      ${1 / Math.sqrt(headSize)};
  }
  workgroupBarrier();
  ${scores(parameters)}
  workgroupBarrier();

  // ${lanes} lanes a head: the largest score, then the weights and their sum.
  let head = thread / ${lanes}u;
  let lane = thread % ${lanes}u;
  var largest = -3.4e38;
  if (head < heads_here) {
    for (var i = lane; i < count; i += ${lanes}u) {
      largest = max(largest, scores[head * ${SPLIT}u + i]);
    }
  }
  lane_values[thread] = largest;
  workgroupBarrier();
  for (var i = 0u; i < ${lanes}u; i++) {
    largest = max(largest, lane_values[head * ${lanes}u + i]);
  }
  workgroupBarrier();
  var sum = 0.0;
  if (head < heads_here) {
    for (var i = lane; i < count; i += ${lanes}u) {
      let weight = exp(scores[head * ${SPLIT}u + i] - largest);
      scores[head * ${SPLIT}u + i] = weight;
      sum += weight;
    }
    if (lane == 0u) {
      maxima[head] = largest;
    }
  }
  lane_values[thread] = sum;
  workgroupBarrier();
  let to = ((query - slab.first) * ${heads}u + kv_head * ${group}u + first_head) * ${splits}u + split;
  if (thread < heads_here) {
    var total = 0.0;
    for (var i = 0u; i < ${lanes}u; i++) {
      total += lane_values[thread * ${lanes}u + i];
    }
    let at = (to + thread * ${splits}u) * ${partialFloats(headSize)}u;
    partials[at] = maxima[thread];
    partials[at + 1u] = total;
  }
  ${weightedValues(parameters)}
}
`,
  };
}

/** Each thread scores whole positions, for all heads of the tile. */
function scores(parameters: AttendParameters): string {
  const { kv } = parameters;
  const { headSize, kvHeads } = kv;
  const { tile } = headTiles(parameters);
  const unit = 4 * perWord(kv.type);
  const chain = (sum: string, a: string, b: string) =>
    [..."xyzw"].map((c) => `${sum} = fma(${a}.${c}, ${b}.${c}, ${sum});`).join(" ");
  const vectors = kv.type === "f16"
    ? `let k0 = vec4<f32>(unpack2x16float(word.x), unpack2x16float(word.y));
       let k1 = vec4<f32>(unpack2x16float(word.z), unpack2x16float(word.w));`
    : "let k0 = bitcast<vec4<f32>>(word);";
  return `
  for (var i = thread; i < count; i += ${WORKGROUP}u) {
    let record = (physical[i / ${BLOCK_SIZE}u] * ${kvHeads}u + kv_head) * ${recordWords(kv) / 4}u;
    ${unroll(tile, (h) => `var score${h} = 0.0;`)}
    for (var j = 0u; j < ${headSize / unit}u; j++) {
      let word = keys[record + j * ${BLOCK_SIZE}u + i % ${BLOCK_SIZE}u];
      ${vectors}
      ${
    unroll(tile, (h) =>
      unroll(unit / 4, (part) => {
        const q = `q[${h * headSize / 4}u + j * ${unit / 4}u + ${part}u]`;
        return `{ let q_part = ${q}; ${chain(`score${h}`, "q_part", `k${part}`)} }`;
      }))
  }
    }
    ${unroll(tile, (h) => `scores[${h * SPLIT}u + i] = score${h};`)}
  }`;
}

/** Pairs of dimensions that a workgroup's threads take at once, and how many share a pair. */
const valueParts = (headSize: number) => Math.max(1, Math.floor(WORKGROUP / (headSize / 2)));

/** Threads take pairs of dimensions; where there are threads enough, positions by turns. */
function weightedValues(parameters: AttendParameters): string {
  const { kv } = parameters;
  const splits = splitsOf(parameters);
  const { headSize } = kv;
  const { tile } = headTiles(parameters);
  const parts = valueParts(headSize);
  const value = kv.type === "f16"
    ? "let v = unpack2x16float(values[value_at(record, slot, pair)]);"
    : `let at = value_at(record, slot, 2u * pair);
       let v = bitcast<vec2<f32>>(vec2<u32>(values[at], values[at + 1u]));`;
  const store = (h: number, sum: string) => `
    if (${h}u < heads_here) {
      let at = (to + ${h * splits}u) * ${partialFloats(headSize)}u + 2u + 2u * pair;
      partials[at] = ${sum}.x;
      partials[at + 1u] = ${sum}.y;
    }`;
  const sums = `
    ${unroll(tile, (h) => `var sum${h} = vec2<f32>(0.0);`)}
    for (var i = part; i < count; i += ${parts}u) {
      let record = record_at(physical[i / ${BLOCK_SIZE}u], kv_head);
      let slot = i % ${BLOCK_SIZE}u;
      ${value}
      ${unroll(tile, (h) => `sum${h} = fma(v, vec2<f32>(scores[${h * SPLIT}u + i]), sum${h});`)}
    }`;
  if (parts === 1) {
    return `
  let part = 0u;
  for (var pair = thread; pair < ${headSize / 2}u; pair += ${WORKGROUP}u) {
    ${sums}
    ${unroll(tile, (h) => store(h, `sum${h}`))}
  }`;
  }
  return `
  let pair = thread % ${headSize / 2}u;
  let part = thread / ${headSize / 2}u;
  if (part < ${parts}u) {
    ${sums}
    ${
    unroll(tile, (h) => `
    parts[(thread * ${tile}u + ${h}u) * 2u] = sum${h}.x;
    parts[(thread * ${tile}u + ${h}u) * 2u + 1u] = sum${h}.y;`)
  }
  }
  workgroupBarrier();
  if (part == 0u) {
    ${
    unroll(tile, (h) =>
      `{
    var sum = vec2<f32>(0.0);
    for (var i = 0u; i < ${parts}u; i++) {
      let begin = ((pair + i * ${headSize / 2}u) * ${tile}u + ${h}u) * 2u;
      sum += vec2<f32>(parts[begin], parts[begin + 1u]);
    }
    ${store(h, "sum")}
    }`)
  }
  }`;
}
