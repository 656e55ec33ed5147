/**
 * WGSL that finds the best of many items in one workgroup without sorting them: by bisection over the
 * bits of the k-th best key, then over the ids of those that tie with it. Keys order floats as
 * integers; ties go to the lower id, as the Backend contract has it.
 */

/** Threads of a workgroup that ranks. */
export const RANK_WORKGROUP = 256;

/** Declarations that `keepBest` needs; once a kernel. */
export const RANK_FUNCTIONS = `
var<workgroup> counts: array<atomic<u32>, 64>;

/** Orders as the floats do; 0 is below every float. */
fn ordered(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) != 0u);
}

fn clear_counts(thread: u32) {
  workgroupBarrier();
  if (thread < 64u) {
    atomicStore(&counts[thread], 0u);
  }
  workgroupBarrier();
}

/** The sum over all threads; each \`slot\` serves once between two \`clear_counts\`. */
fn count_all(slot: u32, own: u32) -> u32 {
  if (own > 0u) {
    atomicAdd(&counts[slot], own);
  }
  workgroupBarrier();
  return atomicLoad(&counts[slot]);
}
`;

export interface Items {
  /** Expression: how many there are. */
  readonly count: string;
  /** Expressions of an item's key and id, given its index \`i\`; a key of 0 marks no item. */
  readonly key: string;
  readonly id: string;
  /** Bits that hold every id. */
  readonly idBits: number;
}

/**
 * Statements, in uniform control flow with \`thread\` in scope, that declare \`NAME_key\` and \`NAME_id\`:
 * the \`best\` best items, of at least so many, are those for which \`isBest\` holds.
 */
export function findBest(name: string, { count, key, id, idBits }: Items, best: string): string {
  const each = (condition: string) => `
      var own = 0u;
      for (var i = thread; i < ${count}; i += ${RANK_WORKGROUP}u) {
        let item_key = ${key};
        ${condition}
      }`;
  return `
  clear_counts(thread);
  var ${name}_key = 0u;
  for (var bit = 0u; bit < 32u; bit++) {
    let candidate = ${name}_key | (0x80000000u >> bit);
    ${each("own += select(0u, 1u, item_key >= candidate);")}
    if (count_all(bit, own) >= ${best}) {
      ${name}_key = candidate;
    }
  }
  var ${name}_ties = ${best};
  {
    ${each(`own += select(0u, 1u, item_key > ${name}_key);`)}
    ${name}_ties -= count_all(32u, own);
  }
  var ${name}_id = 0u;
  for (var bit = 0u; bit < ${idBits}u; bit++) {
    let candidate = ${name}_id | (${2 ** (idBits - 1)}u >> bit);
    ${each(`own += select(0u, 1u, item_key == ${name}_key && ${id} < candidate);`)}
    if (count_all(33u + bit, own) < ${name}_ties) {
      ${name}_id = candidate;
    }
  }`;
}

/** Expression: whether an item is among the best that `findBest` found. */
export const isBest = (name: string, key: string, id: string): string =>
  `(${key} > ${name}_key || (${key} == ${name}_key && ${id} <= ${name}_id))`;
