/** Seeded random numbers for tests: the same seed gives the same data on every machine. */

/** Numbers in [0, 1), by mulberry32: 32 bits of state, ample for test data. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `count` draws of a normal distribution around 0 (Box-Muller). */
export function normals(count: number, deviation: number, random: () => number): Float32Array {
  return Float32Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    return deviation * radius * Math.cos(2 * Math.PI * random());
  });
}
