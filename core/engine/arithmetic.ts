/**
 * How matrices whose weights are integer levels meet activations: `f32` leaves these as they are on
 * WebGPU, and gives them 16 bits on WASM, .002 % of a product from floats; `int8` rounds them to 8 bits,
 * a scale for 32, as llama.cpp does on processors. Float weights meet floats in both.
 */
export const ARITHMETICS = ["f32", "int8"] as const;
export type Arithmetic = typeof ARITHMETICS[number];

/** @throws {RangeError} There is no such arithmetic. */
export function checkArithmetic(arithmetic: Arithmetic): void {
  if (ARITHMETICS.includes(arithmetic)) return;
  throw new RangeError(
    `Cannot use arithmetic "${arithmetic}": it takes ${ARITHMETICS.join(", ")}`,
  );
}
