/**
 * Decodes tensor blocks in plain arithmetic: a second opinion beside the Rust reference. Block
 * layouts and formulas are those of ggml's `ggml-common.h` and `ggml-quants.c`.
 */
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { fromHalf } from "./half.ts";

/** The values of a tensor's bytes, in order. */
export function dequantise(type: TensorType, bytes: Uint8Array): Float32Array {
  const { blockSize, blockBytes } = TENSOR_TYPES[type];
  const blocks = bytes.length / blockBytes;
  const values = new Float32Array(blocks * blockSize);
  for (let b = 0; b < blocks; b++) {
    const block = new DataView(bytes.buffer, bytes.byteOffset + b * blockBytes, blockBytes);
    for (let i = 0; i < blockSize; i++) values[b * blockSize + i] = READERS[type](block, i);
  }
  return values;
}

/** The value of element `i` of a block. */
const READERS: Readonly<Record<TensorType, (block: DataView, i: number) => number>> = {
  F32: (block) => block.getFloat32(0, true),
  F16: (block) => half(block, 0),
  BF16: (block) =>
    new Float32Array(Uint32Array.of(block.getUint16(0, true) << 16).buffer)[0] ?? NaN,
  Q4_0: (block, i) => half(block, 0) * (nibble(block, 2, i) - 8),
  Q4_1: (block, i) => half(block, 0) * nibble(block, 4, i) + half(block, 2),
  Q5_0: (block, i) => half(block, 0) * (nibble(block, 6, i) + fifthBit(block, 2, i) - 16),
  Q5_1: (block, i) =>
    half(block, 0) * (nibble(block, 8, i) + fifthBit(block, 4, i)) + half(block, 2),
  Q8_0: (block, i) => half(block, 0) * block.getInt8(2 + i),
  Q4_K: (block, i) => affineK(block, i, nibbleK(block, 16, i)),
  Q5_K: (block, i) => {
    const fifth = ((block.getUint8(16 + i % 32) >> (i >> 5)) & 1) << 4;
    return affineK(block, i, nibbleK(block, 48, i) + fifth);
  },
  Q6_K: (block, i) => {
    const [part, quarter, column] = [i >> 7, (i >> 5) & 3, i & 31];
    const low = block.getUint8(64 * part + 32 * (quarter & 1) + column) >> (4 * (quarter >> 1));
    const high = block.getUint8(128 + 32 * part + column) >> (2 * quarter);
    const q = (low & 15) | ((high & 3) << 4);
    return half(block, 208) * block.getInt8(192 + (i >> 4)) * (q - 32);
  },
};

function half(block: DataView, at: number): number {
  return fromHalf(block.getUint16(at, true));
}

/** Levels j and j + 16 share byte j. */
function nibble(block: DataView, at: number, i: number): number {
  return (block.getUint8(at + i % 16) >> (i < 16 ? 0 : 4)) & 15;
}

function fifthBit(block: DataView, at: number, i: number): number {
  return ((block.getUint32(at, true) >>> i) & 1) << 4;
}

/** Groups 2k and 2k + 1 share 32 bytes. */
function nibbleK(block: DataView, at: number, i: number): number {
  return (block.getUint8(at + 32 * (i >> 6) + i % 32) >> (4 * ((i >> 5) & 1))) & 15;
}

function affineK(block: DataView, i: number, q: number): number {
  const group = i >> 5;
  const byte = (at: number) => block.getUint8(4 + at);
  const scale = group < 4
    ? byte(group) & 63
    : (byte(group + 4) & 15) | ((byte(group - 4) >> 6) << 4);
  const minimum = group < 4
    ? byte(group + 4) & 63
    : (byte(group + 4) >> 4) | ((byte(group) >> 6) << 4);
  return half(block, 0) * scale * q - half(block, 2) * minimum;
}
