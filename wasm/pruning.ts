/** How the core takes a key sketch. */
import type { KeySketch } from "../core/engine/backend.ts";

/** Dimensions of a code that the kernels are made for. */
export const DIMENSIONS = [16, 24, 32];

/** The maps as the core takes them. */
export function packSketch({ keyMap, keyOffset, queryMap }: KeySketch): Float32Array<ArrayBuffer> {
  const packed = new Float32Array(keyMap.length + keyOffset.length + queryMap.length);
  packed.set(keyMap);
  packed.set(keyOffset, keyMap.length);
  packed.set(queryMap, keyMap.length + keyOffset.length);
  return packed;
}
