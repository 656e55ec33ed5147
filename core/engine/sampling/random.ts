/**
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). A number depends on the seed and the step alone, so a sequence draws the same
 * tokens whatever runs beside it, and after any preemption, with no state to save.
 */

const ROUNDS = 10;
const MULTIPLIERS = [0xD2511F53, 0xCD9E8D57] as const;
const WEYL = [0x9E3779B9, 0xBB67AE85] as const;

/** Upper 32 bits of the product of two unsigned 32-bit integers. */
function multiplyHigh(x: number, y: number): number {
  const xh = x >>> 16, xl = x & 0xffff, yh = y >>> 16, yl = y & 0xffff;
  const low = xl * yl, cross = xh * yl + (low >>> 16), middle = xl * yh + (cross % 0x10000);
  return (xh * yh + Math.floor(cross / 0x10000) + Math.floor(middle / 0x10000)) >>> 0;
}

export type Words = readonly [number, number, number, number];

/** The Philox4x32-10 block: four random words for a counter of four words and a key of two. */
export function philox(counter: Words, key: readonly [number, number]): Words {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(MULTIPLIERS[0], c0), low0 = Math.imul(MULTIPLIERS[0], c0) >>> 0;
    const high1 = multiplyHigh(MULTIPLIERS[1], c2), low1 = Math.imul(MULTIPLIERS[1], c2) >>> 0;
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0];
    k0 = (k0 + WEYL[0]) >>> 0;
    k1 = (k1 + WEYL[1]) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/**
 * A number in [0, 1) with 53 random bits.
 *
 * @param seed Unsigned 64-bit.
 * @param step Index of the draw, below 2^32.
 */
export function uniform(seed: bigint, step: number): number {
  const key = [Number(seed & 0xffffffffn), Number((seed >> 32n) & 0xffffffffn)] as const;
  const [high, low] = philox([step, 0, 0, 0], key);
  return ((high >>> 5) * 0x4000000 + (low >>> 6)) / 2 ** 53;
}
