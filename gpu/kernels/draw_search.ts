/**
 * WGSL that draws from a whole row without sorting it: the tokens that a stage keeps are those up to
 * some rank, which is a key and, among its ties, an id; and the rank at which a running mass passes is
 * found bit by bit.
 */
import { findBest, RANK_WORKGROUP } from "./rank.ts";
import { LOWEST, type RowParameters } from "./row_chunks.ts";

/** Declares `mass_from`, and `search`, which answers an id; beyond the vocabulary, there is none. */
export function drawSearch({ vocabulary }: RowParameters): string {
  const idBits = Math.ceil(Math.log2(vocabulary + 1));
  const key = "ordered(logits[row.first + i])";
  const items = { count: `${vocabulary}u`, key, id: "i", idBits };
  return `
/** A rank: all that come before it have a larger key, or the same and a lower id. */
struct Rank {
  key: u32,
  id: u32,
};

/** The last rank that can be drawn. */
const ALL_RANKS = Rank(IMPOSSIBLE + 1u, ${vocabulary - 1}u);

fn is_kept(key: u32, id: u32, last: Rank) -> bool {
  return key > last.key || (key == last.key && id <= last.id);
}

/** The mass of the kept tokens whose keys are at least this one, relative to the best token's. */
fn mass_from(thread: u32, key: u32, last: Rank, row: Row, inverse: f32) -> f32 {
  var sum = 0.0;
  for (var i = thread; i < ${vocabulary}u; i += ${RANK_WORKGROUP}u) {
    let logit = logits[row.first + i];
    let own = ordered(logit);
    if (own >= key && own > IMPOSSIBLE && is_kept(own, i, last)) {
      sum += exp((logit - row.largest) * inverse);
    }
  }
  return sum_of_all(thread, sum);
}

/** The first rank at which the running mass reaches what is wanted, or passes it. */
fn rank_at(thread: u32, wanted: f32, beyond: bool, last: Rank, row: Row, inverse: f32) -> Rank {
  var key = 0u;
  for (var bit = 0u; bit < 32u; bit++) {
    let candidate = key | (0x80000000u >> bit);
    let mass = mass_from(thread, candidate, last, row, inverse);
    if (mass > wanted || (!beyond && mass == wanted && mass > 0.0)) {
      key = candidate;
    }
  }
  let before = mass_from(thread, key + 1u, last, row, inverse);
  // Ties weigh the same, so how many of them are needed is a quotient.
  let value = bitcast<f32>(select(~key, key & 0x7fffffffu, (key >> 31u) == 1u));
  let quotient = max(0.0, wanted - before) / exp((value - row.largest) * inverse);
  let asked = u32(min(select(ceil(quotient), floor(quotient) + 1.0, beyond), ${vocabulary}.0));
  clear_counts(thread);
  var ties = 0u;
  for (var i = thread; i < ${vocabulary}u; i += ${RANK_WORKGROUP}u) {
    let item = ${key};
    ties += select(0u, 1u, item == key && is_kept(item, i, last));
  }
  // Rounding may ask for one more than there are.
  let needed = clamp(asked, 1u, max(1u, count_all(63u, ties)));
  var id = 0u;
  for (var bit = 0u; bit < ${idBits}u; bit++) {
    let candidate = id | (${2 ** (idBits - 1)}u >> bit);
    var own = 0u;
    for (var i = thread; i < min(candidate, ${vocabulary}u); i += ${RANK_WORKGROUP}u) {
      let item = ${key};
      own += select(0u, 1u, item == key && is_kept(item, i, last));
    }
    if (count_all(bit, own) < needed) {
      id = candidate;
    }
  }
  return Rank(key, id);
}

fn search(thread: u32, row: Row, draw: Draw) -> u32 {
  var last = ALL_RANKS;
  if (draw.top_k > 0u && draw.top_k < ${vocabulary}u) {
    ${findBest("kept", items, "draw.top_k")}
    if (kept_key > IMPOSSIBLE) {
      last = Rank(kept_key, kept_id);
    }
  }
  if (draw.top_p < 1.0) {
    let all = mass_from(thread, 0u, last, row, 1.0);
    last = rank_at(thread, draw.top_p * all, false, last, row, 1.0);
  }
  let least = ordered(max(row.largest + draw.log_min_p, ${LOWEST}));
  if (least > last.key) {
    last = Rank(least, ${vocabulary - 1}u);
  }
  let inverse = draw.inverse_temperature;
  let all = mass_from(thread, 0u, last, row, inverse);
  return rank_at(thread, draw.u * all, true, last, row, inverse).id;
}
`;
}
