/**
 * Draws a token from a row, as `Draw` of the contract says, in one workgroup and without sorting: the
 * tokens that a stage keeps are those up to some rank, which is a key and, among its ties, an id; and
 * the rank at which a running mass passes is found bit by bit.
 */
import type { Draw as DrawRequest } from "../../core/engine/backend.ts";
import { type Kernel, read, uniform, write } from "../kernel.ts";
import { findBest, RANK_FUNCTIONS, RANK_WORKGROUP } from "./rank.ts";
import { REDUCE_FUNCTIONS } from "./reduce.ts";
import { LOWEST, type RowParameters } from "./row_chunks.ts";

/** What a draw asks for; words in this order. */
const DRAW = `
struct Draw {
  /** 0 keeps all. */
  top_k: u32,
  /** 1 or more keeps all. */
  top_p: f32,
  /** Log of the least share of the best token's probability. */
  log_min_p: f32,
  /** 0 takes the best token. */
  inverse_temperature: f32,
  u: f32,
};
`;

/** The largest share that is below 1 by more than a product with it is rounded. */
const MOST = 1 - 2 ** -23;

/** A draw's numbers as the kernel takes them. */
export function drawWords(draw: DrawRequest): ArrayBuffer {
  const { topK, topP, minP, temperature, u } = draw;
  const view = new DataView(new ArrayBuffer(20));
  view.setUint32(0, topK, true);
  // Floats that are finite, lest 0 times one be no number.
  const inverse = temperature === 0 ? 0 : Math.min(1 / temperature, 3e38);
  const floats = [topP, Math.max(Math.log(minP), -1e30), inverse, Math.min(u, MOST)];
  floats.forEach((x, i) => view.setFloat32(4 * (i + 1), x, true));
  return view.buffer as ArrayBuffer;
}

/** In place of an id where no token is possible. */
export const NO_TOKEN = 0xffffffff;

/** Dispatch: [1]. */
export function drawKernel({ vocabulary }: RowParameters): Kernel {
  const idBits = Math.ceil(Math.log2(vocabulary + 1));
  const items = { count: `${vocabulary}u`, key: "ordered(row[i])", id: "i", idBits };
  return {
    name: `draw ${vocabulary}`,
    bindings: [uniform("draw", "Draw"), read("row", "array<f32>"), write("drawn", "array<u32>")],
    code: `
${DRAW}${RANK_FUNCTIONS}${REDUCE_FUNCTIONS}
/** A rank: all that come before it have a larger key, or the same and a lower id. */
struct Rank {
  key: u32,
  id: u32,
};

/** The key of -Infinity: none that is drawn has it. */
const IMPOSSIBLE = 0x007fffffu;

fn is_kept(key: u32, id: u32, last: Rank) -> bool {
  return key > last.key || (key == last.key && id <= last.id);
}

/** The mass of the kept tokens whose keys are at least this one, relative to the best token's. */
fn mass_from(thread: u32, key: u32, last: Rank, largest: f32, inverse: f32) -> f32 {
  var sum = 0.0;
  for (var i = thread; i < ${vocabulary}u; i += ${RANK_WORKGROUP}u) {
    let own = ordered(row[i]);
    if (own >= key && own > IMPOSSIBLE && is_kept(own, i, last)) {
      sum += exp((row[i] - largest) * inverse);
    }
  }
  return sum_of_all(thread, sum);
}

/** The first rank at which the running mass reaches what is wanted, or passes it. */
fn rank_at(
  thread: u32,
  wanted: f32,
  beyond: bool,
  last: Rank,
  largest: f32,
  inverse: f32,
) -> Rank {
  var key = 0u;
  for (var bit = 0u; bit < 32u; bit++) {
    let candidate = key | (0x80000000u >> bit);
    let mass = mass_from(thread, candidate, last, largest, inverse);
    if (mass > wanted || (!beyond && mass == wanted && mass > 0.0)) {
      key = candidate;
    }
  }
  let before = mass_from(thread, key + 1u, last, largest, inverse);
  // Ties weigh the same, so how many of them are needed is a quotient.
  let value = bitcast<f32>(select(~key, key & 0x7fffffffu, (key >> 31u) == 1u));
  let quotient = max(0.0, wanted - before) / exp((value - largest) * inverse);
  let asked = u32(min(select(ceil(quotient), floor(quotient) + 1.0, beyond), ${vocabulary}.0));
  clear_counts(thread);
  var ties = 0u;
  for (var i = thread; i < ${vocabulary}u; i += ${RANK_WORKGROUP}u) {
    let item = ordered(row[i]);
    ties += select(0u, 1u, item == key && is_kept(item, i, last));
  }
  // Rounding may ask for one more than there are.
  let needed = clamp(asked, 1u, max(1u, count_all(63u, ties)));
  var id = 0u;
  for (var bit = 0u; bit < ${idBits}u; bit++) {
    let candidate = id | (${2 ** (idBits - 1)}u >> bit);
    var own = 0u;
    for (var i = thread; i < min(candidate, ${vocabulary}u); i += ${RANK_WORKGROUP}u) {
      let item = ordered(row[i]);
      own += select(0u, 1u, item == key && is_kept(item, i, last));
    }
    if (count_all(bit, own) < needed) {
      id = candidate;
    }
  }
  return Rank(key, id);
}

@compute @workgroup_size(${RANK_WORKGROUP})
fn main(@builtin(local_invocation_index) thread: u32) {
  ${findBest("best", items, "1u")}
  let largest = row[best_id];
  var last = Rank(IMPOSSIBLE + 1u, ${vocabulary - 1}u);
  if (draw.top_k > 0u && draw.top_k < ${vocabulary}u) {
    ${findBest("kept", items, "draw.top_k")}
    if (kept_key > IMPOSSIBLE) {
      last = Rank(kept_key, kept_id);
    }
  }
  if (draw.inverse_temperature > 0.0) {
    if (draw.top_p < 1.0) {
      let all = mass_from(thread, 0u, last, largest, 1.0);
      last = rank_at(thread, draw.top_p * all, false, last, largest, 1.0);
    }
    let least = ordered(max(largest + draw.log_min_p, ${LOWEST}));
    if (least > last.key) {
      last = Rank(least, ${vocabulary - 1}u);
    }
    let inverse = draw.inverse_temperature;
    let all = mass_from(thread, 0u, last, largest, inverse);
    last = rank_at(thread, draw.u * all, true, last, largest, inverse);
  } else {
    last = Rank(best_key, best_id);
  }
  if (thread == 0u) {
    drawn[0] = select(last.id, ${NO_TOKEN}u, best_key <= IMPOSSIBLE);
  }
}
`,
  };
}
