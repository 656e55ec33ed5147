/**
 * Plain quantisers for test models: every tensor type that the project reads. They round to the
 * nearest level of a block's range and do no search, so they are worse than llama.cpp's, and simple.
 * Block layouts are those of ggml's `ggml-common.h`.
 */
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { toHalf } from "./half.ts";

/** Writes one block: `values` has the type's block size, `block` its bytes. */
type BlockWriter = (values: Float32Array, block: DataView) => void;

/**
 * Encodes values as one tensor type.
 *
 * @param values Shape [rows, columns] with columns a multiple of the type's block size.
 */
export function quantise(type: TensorType, values: Float32Array): Uint8Array<ArrayBuffer> {
  const { blockSize, blockBytes } = TENSOR_TYPES[type];
  if (values.length % blockSize !== 0) {
    throw new RangeError(`Cannot quantise to ${type}: ${values.length} values are no whole blocks`);
  }
  const blocks = values.length / blockSize;
  const bytes = new Uint8Array(blocks * blockBytes);
  for (let i = 0; i < blocks; i++) {
    WRITERS[type](
      values.subarray(i * blockSize, (i + 1) * blockSize),
      new DataView(bytes.buffer, i * blockBytes, blockBytes),
    );
  }
  return bytes;
}

const WRITERS: Readonly<Record<TensorType, BlockWriter>> = {
  F32: ([value = 0], block) => block.setFloat32(0, value, true),
  F16: ([value = 0], block) => block.setUint16(0, toHalf(value), true),
  BF16: ([value = 0], block) => block.setUint16(0, toBrainFloat(value), true),
  Q4_0: (values, block) => symmetric(values, block, 4),
  Q4_1: (values, block) => affine(values, block, 4),
  Q5_0: (values, block) => symmetric(values, block, 5),
  Q5_1: (values, block) => affine(values, block, 5),
  Q8_0: (values, block) => {
    const scale = Math.max(...values.map(Math.abs)) / 127;
    block.setUint16(0, toHalf(scale), true);
    values.forEach((value, i) => block.setInt8(2 + i, level(value, scale, 0, -127, 127)));
  },
  Q4_K: (values, block) => superBlock(values, block, 4),
  Q5_K: (values, block) => superBlock(values, block, 5),
  Q6_K: sixBitSuperBlock,
};

/** The nearest level q of `value = scale * q + minimum`, within its range. */
function level(value: number, scale: number, minimum: number, from: number, to: number): number {
  const nearest = scale === 0 ? 0 : Math.round((value - minimum) / scale);
  return Math.min(to, Math.max(from, nearest));
}

function toBrainFloat(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** Q4_0, Q5_0: value = scale * (q - half). */
function symmetric(values: Float32Array, block: DataView, bits: 4 | 5): void {
  const half = 2 ** (bits - 1);
  const scale = Math.max(...values.map(Math.abs)) / (half - 1);
  block.setUint16(0, toHalf(scale), true);
  const levels = Array.from(values, (v) => level(v, scale, 0, -half, half - 1) + half);
  packHalves(levels, block, 2, bits);
}

/** Q4_1, Q5_1: value = scale * q + minimum. */
function affine(values: Float32Array, block: DataView, bits: 4 | 5): void {
  const most = 2 ** bits - 1;
  const minimum = Math.min(...values);
  const scale = (Math.max(...values) - minimum) / most;
  block.setUint16(0, toHalf(scale), true);
  block.setUint16(2, toHalf(minimum), true);
  packHalves(Array.from(values, (v) => level(v, scale, minimum, 0, most)), block, 4, bits);
}

/** 32 levels: with 5 bits the fifth bits as 32 bits first; then levels j and j + 16 in one byte. */
function packHalves(levels: number[], block: DataView, at: number, bits: 4 | 5): void {
  if (bits === 5) {
    const fifths = levels.reduce((word, q, i) => word | ((q >>> 4) << i), 0);
    block.setUint32(at, fifths >>> 0, true);
    at += 4;
  }
  for (let j = 0; j < 16; j++) {
    const [low = 0, high = 0] = [levels[j], levels[j + 16]];
    block.setUint8(at + j, (low & 15) | ((high & 15) << 4));
  }
}

/**
 * Q4_K, Q5_K: eight groups of 32 with value = d * scale * q - dmin * minimum, where the groups'
 * scales and minima have 6 bits each.
 */
function superBlock(values: Float32Array, block: DataView, bits: 4 | 5): void {
  const most = 2 ** bits - 1;
  const groups = Array.from({ length: 8 }, (_, g) => values.subarray(32 * g, 32 * g + 32));
  const minima = groups.map((group) => Math.max(0, -Math.min(...group)));
  const scales = groups.map((group, g) => (Math.max(0, ...group) + (minima[g] ?? 0)) / most);
  const d = Math.max(...scales) / 63;
  const dmin = Math.max(...minima) / 63;
  block.setUint16(0, toHalf(d), true);
  block.setUint16(2, toHalf(dmin), true);
  const scaleLevels = scales.map((scale) => level(scale, d, 0, 0, 63));
  const minimumLevels = minima.map((minimum) => level(minimum, dmin, 0, 0, 63));
  packSixBits(scaleLevels, minimumLevels, block, 4);
  const levels = groups.flatMap((group, g) => {
    const scale = d * (scaleLevels[g] ?? 0);
    const minimum = -dmin * (minimumLevels[g] ?? 0);
    return Array.from(group, (value) => level(value, scale, minimum, 0, most));
  });
  const low = bits === 5 ? 48 : 16;
  levels.forEach((q, i) => {
    // Two groups share 32 bytes: the even one has their low nibbles, the odd one the high ones.
    const group = i >> 5;
    const column = i & 31;
    const byte = low + 32 * (group >> 1) + column;
    block.setUint8(byte, block.getUint8(byte) | ((q & 15) << (4 * (group & 1))));
    if (bits === 5) block.setUint8(16 + column, block.getUint8(16 + column) | ((q >> 4) << group));
  });
}

/** Eight 6-bit scales and eight 6-bit minima in 12 bytes. */
function packSixBits(scales: number[], minima: number[], block: DataView, at: number): void {
  for (let g = 0; g < 4; g++) {
    const [scale = 0, minimum = 0] = [scales[g], minima[g]];
    const [scale4 = 0, minimum4 = 0] = [scales[g + 4], minima[g + 4]];
    block.setUint8(at + g, scale | ((scale4 >> 4) << 6));
    block.setUint8(at + 4 + g, minimum | ((minimum4 >> 4) << 6));
    block.setUint8(at + 8 + g, (scale4 & 15) | ((minimum4 & 15) << 4));
  }
}

/** Q6_K: sixteen groups of 16 with value = d * scale * (q - 32), the scales being int8. */
function sixBitSuperBlock(values: Float32Array, block: DataView): void {
  const groups = Array.from({ length: 16 }, (_, g) => values.subarray(16 * g, 16 * g + 16));
  const scales = groups.map((group) => Math.max(...group.map(Math.abs)) / 31);
  const d = Math.max(...scales) / 127;
  block.setUint16(208, toHalf(d), true);
  groups.forEach((group, g) => {
    const scale = level(scales[g] ?? 0, d, 0, 0, 127);
    block.setInt8(192 + g, scale);
    group.forEach((value, i) => {
      putSixBits(block, 16 * g + i, level(value, d * scale, 0, -32, 31) + 32);
    });
  });
}

/** Each half of 128 has four quarters of 32, whose low nibbles share bytes two by two. */
function putSixBits(block: DataView, index: number, q: number): void {
  const half = index >> 7;
  const quarter = (index >> 5) & 3;
  const column = index & 31;
  const low = 64 * half + column + 32 * (quarter & 1);
  const high = 128 + 32 * half + column;
  block.setUint8(low, block.getUint8(low) | ((q & 15) << (4 * (quarter >> 1))));
  block.setUint8(high, block.getUint8(high) | ((q >> 4) << (2 * quarter)));
}
