/**
 * Chooses the blocks that a pruned token reads, for each KV head apart (arXiv 2502.02770): scans the
 * 4-bit codes of all its keys, turns the scores into each block's share of the attention in the mean
 * of the group's heads, and takes the smallest set that holds the plan's mass, or all blocks above its
 * threshold. The first block and the last two are in any set. One workgroup does it all, so nothing
 * but counters leaves the GPU.
 *
 * Shares become integers before they are compared and summed: then the order in which threads add
 * does not matter, and the k-th largest is found bit by bit, without sorting.
 */
import { BLOCK_SIZE } from "../../core/engine/backend.ts";
import { type Kernel, read, STEP, uniform, unroll, write } from "../kernel.ts";
import { CODE_TOKENS, codeWords } from "../sketch.ts";
import { TOKEN } from "../step_input.ts";
import { type AttendParameters, chosenWords, SLAB } from "./attend.ts";
import { RANK_FUNCTIONS, RANK_WORKGROUP } from "./rank.ts";
import { REDUCE_FUNCTIONS } from "./reduce.ts";
import { LOWEST } from "./row_chunks.ts";

export interface SelectParameters extends Omit<AttendParameters, "pruned"> {
  /** Dimensions of a code. */
  readonly dimensions: number;
}

/** What all shares together are counted as. */
const WHOLE_BITS = 28;
/** Bits of a share: one may round up to the whole. */
const SHARE_BITS = WHOLE_BITS + 1;
const WHOLE = 2 ** WHOLE_BITS;

/** Dispatch: [KV heads, queries of the slab]. */
export function selectKernel(parameters: SelectParameters): Kernel {
  const { heads, kv: { kvHeads, headSize }, blocks: most, dimensions } = parameters;
  const group = heads / kvHeads;
  const width = (heads + 2 * kvHeads) * headSize;
  const queryMaps = kvHeads * dimensions * (headSize + 1);
  return {
    name: `select ${heads}/${kvHeads}x${headSize} ${most} ${dimensions}`,
    bindings: [
      uniform("step", "Step"),
      uniform("slab", "Slab"),
      read("queries", "array<u32>"),
      read("tokens", "array<Token>"),
      read("tables", "array<u32>"),
      read("qkv", "array<f32>"),
      read("sketch", "array<f32>"),
      read("codes", "array<u32>"),
      write("chosen_blocks", "array<u32>"),
      write("counters", "array<f32>"),
    ],
    code: `
${STEP}${SLAB}${TOKEN}${RANK_FUNCTIONS}${REDUCE_FUNCTIONS}${scanFunctions(parameters)}
@compute @workgroup_size(${RANK_WORKGROUP})
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let query = slab.first + workgroup.y;
  if (query >= step.count) {
    return;
  }
  let kv_head = workgroup.x;
  let token = queries[query];
  if (tokens[token].plan == 0u) {
    return;
  }
  let context = tokens[token].position + 1u;
  let blocks = (context + ${BLOCK_SIZE - 1}u) / ${BLOCK_SIZE}u;
  let table = tokens[token].table;
  let least = tokens[token].least;
  let chosen = (workgroup.y * ${kvHeads}u + kv_head) * ${chosenWords(most)}u;
  let list = chosen + 1u;
  let shares = list + ${most}u;
  let logs = shares + ${most}u;
  let counter = (token * ${kvHeads}u + kv_head) * 2u;
  // A thread's own blocks lie together, so that it can write those it keeps in their order.
  let each = (blocks + ${RANK_WORKGROUP - 1}u) / ${RANK_WORKGROUP}u;
  let begin = min(thread * each, blocks);
  let end = min(begin + each, blocks);
  if (blocks <= max(3u, least)) {
    for (var block = begin; block < end; block++) {
      chosen_blocks[list + block] = tables[table + block];
    }
    if (thread == 0u) {
      chosen_blocks[chosen] = blocks;
      counters[counter] += f32(blocks);
    }
    return;
  }
  for (var i = thread; i < ${group * dimensions}u; i += ${RANK_WORKGROUP}u) {
    let q = token * ${width}u + (kv_head * ${group}u + i / ${dimensions}u) * ${headSize}u;
    let row = ${queryMaps}u + (kv_head * ${dimensions}u + i % ${dimensions}u) * ${headSize}u;
    var sum = 0.0;
    for (var j = 0u; j < ${headSize}u; j++) {
      sum = fma(sketch[row + j], qkv[q + j], sum);
    }
    mapped[i] = sum;
  }
  workgroupBarrier();
  ${findShares(group, kvHeads)}
  ${choose(most)}
}
`,
  };
}

function scanFunctions({ heads, kv: { kvHeads }, dimensions }: SelectParameters): string {
  const words = codeWords(dimensions);
  return `
var<workgroup> mapped: array<f32, ${heads / kvHeads * dimensions}>;
var<workgroup> kept: array<u32, ${RANK_WORKGROUP}>;

/** The score of one key of a block, but for what the softmax does not see. */
fn score(head: u32, record: u32, slot: u32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < ${words}u; i++) {
    let word = codes[(record * ${words}u + i) * ${CODE_TOKENS}u + slot];
    let q = head * ${dimensions}u + 8u * i;
    ${unroll(8, (j) => `sum = fma(mapped[q + ${j}u], f32((word >> ${4 * j}u) & 15u) - 8.0, sum);`)}
  }
  return sum;
}

/** The log of the sum of e^score over the first keys of a block. */
fn log_sum(head: u32, record: u32, count: u32) -> f32 {
  var scores: array<f32, ${BLOCK_SIZE}>;
  var largest = ${LOWEST};
  for (var slot = 0u; slot < count; slot++) {
    scores[slot] = score(head, record, slot);
    largest = max(largest, scores[slot]);
  }
  var sum = 0.0;
  for (var slot = 0u; slot < count; slot++) {
    sum += exp(scores[slot] - largest);
  }
  return largest + log(sum);
}

fn is_always_read(block: u32, blocks: u32) -> bool {
  return block == 0u || block + 2u >= blocks;
}

fn level_of(share: u32) -> u32 {
  return u32(round(bitcast<f32>(share) * ${WHOLE}.0));
}
`;
}

/** Each block's share of the attention, head by head; a thread reads and writes its own blocks only. */
function findShares(group: number, kvHeads: number): string {
  return `
  for (var head = 0u; head < ${group}u; head++) {
    var largest = ${LOWEST};
    for (var block = begin; block < end; block++) {
      let record = tables[table + block] * ${kvHeads}u + kv_head;
      let sum = log_sum(head, record, min(${BLOCK_SIZE}u, context - block * ${BLOCK_SIZE}u));
      chosen_blocks[logs + block] = bitcast<u32>(sum);
      largest = max(largest, sum);
    }
    largest = largest_of_all(thread, largest);
    var total = 0.0;
    for (var block = begin; block < end; block++) {
      total += exp(bitcast<f32>(chosen_blocks[logs + block]) - largest);
    }
    total = sum_of_all(thread, total) * ${group}.0;
    for (var block = begin; block < end; block++) {
      let before = select(0.0, bitcast<f32>(chosen_blocks[shares + block]), head > 0u);
      let share = exp(bitcast<f32>(chosen_blocks[logs + block]) - largest) / total;
      chosen_blocks[shares + block] = bitcast<u32>(before + share);
    }
  }`;
}

/** By level: the largest `cut` whose blocks, with those always read, are enough; then the ties. */
function choose(most: number): string {
  const idBits = Math.ceil(Math.log2(most + 1));
  const candidates = (text: string) => `
    for (var block = begin; block < end; block++) {
      let level = level_of(chosen_blocks[shares + block]);
      if (!is_always_read(block, blocks)) {
        ${text}
      }
    }`;
  return `
  clear_counts(thread);
  let by_mass = tokens[token].plan == 1u;
  let asked = level_of(bitcast<u32>(tokens[token].share));
  var always = 0u;
  for (var block = begin; block < end; block++) {
    if (is_always_read(block, blocks)) {
      always += level_of(chosen_blocks[shares + block]);
    }
  }
  always = count_all(63u, always);
  let sum_wanted = select(0u, asked - min(asked, always), by_mass);
  let count_wanted = max(least, 3u) - 3u;
  var cut = 0u;
  for (var bit = 0u; bit < ${SHARE_BITS}u; bit++) {
    let candidate = cut | (${2 ** (SHARE_BITS - 1)}u >> bit);
    var sum = 0u;
    var count = 0u;
    ${candidates("if (level >= candidate) { sum += level; count += 1u; }")}
    sum = count_all(bit, sum);
    count = count_all(32u + bit, count);
    if (count >= count_wanted && sum >= sum_wanted && (by_mass || candidate <= asked)) {
      cut = candidate;
    }
  }
  clear_counts(thread);
  var above_sum = 0u;
  var above = 0u;
  var ties = 0u;
  ${
    candidates(`
        if (level > cut) { above_sum += level; above += 1u; }
        if (level == cut) { ties += 1u; }`)
  }
  above_sum = count_all(0u, above_sum);
  above = count_all(1u, above);
  ties = count_all(2u, ties);
  var ties_wanted = count_wanted - min(count_wanted, above);
  if (by_mass) {
    let missing = sum_wanted - min(sum_wanted, above_sum);
    // Ties at 0 never make up for anything: all of them, or none.
    let enough = select((missing + cut - 1u) / max(cut, 1u), select(0u, ties, missing > 0u), cut == 0u);
    ties_wanted = max(ties_wanted, enough);
  } else if (cut >= asked) {
    ties_wanted = ties;
  }
  ties_wanted = min(ties_wanted, ties);
  var last_tie = 0u;
  for (var bit = 0u; bit < ${idBits}u; bit++) {
    let candidate = last_tie | (${2 ** (idBits - 1)}u >> bit);
    var count = 0u;
    ${candidates("if (level == cut && block < candidate) { count += 1u; }")}
    if (count_all(3u + bit, count) < ties_wanted) {
      last_tie = candidate;
    }
  }
  var own = 0u;
  var held = 0u;
  for (var block = begin; block < end; block++) {
    let level = level_of(chosen_blocks[shares + block]);
    let tie = level == cut && ties_wanted > 0u && block <= last_tie;
    if (is_always_read(block, blocks) || level > cut || tie) {
      // Where its log was, a flag.
      chosen_blocks[logs + block] = 1u;
      own += 1u;
      held += level;
    } else {
      chosen_blocks[logs + block] = 0u;
    }
  }
  held = count_all(62u, held);
  kept[thread] = own;
  workgroupBarrier();
  var at = 0u;
  for (var i = 0u; i < thread; i++) {
    at += kept[i];
  }
  if (thread == ${RANK_WORKGROUP - 1}u) {
    chosen_blocks[chosen] = at + own;
    counters[counter] += f32(at + own);
    counters[counter + 1u] += max(0.0, 1.0 - f32(held) / ${WHOLE}.0);
  }
  for (var block = begin; block < end; block++) {
    if (chosen_blocks[logs + block] == 1u) {
      chosen_blocks[list + at] = tables[table + block];
      at += 1u;
    }
  }`;
}
