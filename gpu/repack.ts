/**
 * Takes rows of a tensor as they lie in the file apart into levels and scales, as `packed.ts` reads
 * them. Works on 16-bit halves: what every ggml block is a multiple of. Layouts: ggml-common.h.
 */
import { TENSOR_TYPES, type TensorType } from "../core/model/tensors.ts";
import { PACKED, SUPER_WORDS } from "./packed.ts";

/** Where packed weights go; both little-endian, as every machine with WebGPU is. */
export interface PackedTarget {
  readonly quants: Uint16Array;
  readonly scales: Uint16Array;
}

/**
 * Repacks whole rows.
 *
 * @param rows The file's bytes as halves.
 * @param elements How many `rows` hold, a multiple of 32.
 * @param first The element of `target` at which they go, a multiple of 32.
 */
export function repack(
  type: TensorType,
  rows: Uint16Array,
  elements: number,
  target: PackedTarget,
  first: number,
): void {
  const write = WRITERS[type];
  const { blockSize, blockBytes } = TENSOR_TYPES[type];
  const size = Math.max(32, blockSize);
  const halves = blockBytes / 2 * size / blockSize;
  for (let block = 0; block < elements / size; block++) {
    write(rows, block * halves, target, first / 32 + block * size / 32);
  }
}

/**
 * Writes the block of `rows` at half `at` to `target`, from the 32 elements number `group` on: two of
 * the kernels' groups, whose levels lie together.
 */
type Writer = (rows: Uint16Array, at: number, target: PackedTarget, group: number) => void;

/** Halves of 32 elements' levels. */
const size = (type: TensorType) => 2 * PACKED[type].words;

const WRITERS: Readonly<Record<TensorType, Writer>> = {
  F32: (rows, at, { quants }, group) => copy(rows, at, quants, group * size("F32"), 64),
  F16: (rows, at, { quants }, group) => copy(rows, at, quants, group * size("F16"), 32),
  BF16: (rows, at, { quants }, group) => copy(rows, at, quants, group * size("BF16"), 32),
  Q4_0: (rows, at, { quants, scales }, group) => {
    copy(rows, at, scales, group, 1);
    writeTwice(rows, at + 1, quants, group * size("Q4_0"));
  },
  Q4_1: (rows, at, { quants, scales }, group) => {
    copy(rows, at, scales, 2 * group, 2);
    writeTwice(rows, at + 2, quants, group * size("Q4_1"));
  },
  Q5_0: (rows, at, { quants, scales }, group) => {
    copy(rows, at, scales, group, 1);
    copy(rows, at + 1, quants, group * size("Q5_0") + 8, 2);
    writeTwice(rows, at + 3, quants, group * size("Q5_0"));
  },
  Q5_1: (rows, at, { quants, scales }, group) => {
    copy(rows, at, scales, 2 * group, 2);
    copy(rows, at + 2, quants, group * size("Q5_1") + 8, 2);
    writeTwice(rows, at + 4, quants, group * size("Q5_1"));
  },
  Q8_0: (rows, at, { quants, scales }, group) => {
    copy(rows, at, scales, group, 1);
    copy(rows, at + 1, quants, group * size("Q8_0"), 16);
  },
  Q4_K: (rows, at, target, group) => {
    writePairs(rows, at, target.scales, group);
    for (let part = 0; part < 8; part++) {
      const from = at + 8 + 16 * (part >> 1);
      const to = (group + part) * size("Q4_K");
      writeNibbles(rows, from, part & 1, target.quants, to);
      writeNibbles(rows, from + 8, part & 1, target.quants, to + 4);
    }
  },
  Q5_K: (rows, at, target, group) => {
    writePairs(rows, at, target.scales, group);
    for (let part = 0; part < 8; part++) {
      const from = at + 24 + 16 * (part >> 1);
      const to = (group + part) * size("Q5_K");
      for (let half = 0; half < 2; half++) {
        writeNibbles(rows, from + 8 * half, part & 1, target.quants, to + 4 * half);
        target.quants[to + 8 + half] = gatherBits(rows, at + 8 + 8 * half, part, 1, 16);
      }
    }
  },
  Q6_K: (rows, at, { quants, scales }, group) => {
    const scaleAt = group / 8 * 2 * SUPER_WORDS;
    copy(rows, at + 104, scales, scaleAt, 1);
    copy(rows, at + 96, scales, scaleAt + 2, 8);
    for (let part = 0; part < 16; part++) {
      const [half, quarter, odd] = [part >> 3, (part >> 1) & 3, part & 1];
      const from = at + 32 * half + 16 * (quarter & 1) + 8 * odd;
      const to = group * size("Q6_K") + 6 * part;
      writeNibbles(rows, from, quarter >> 1, quants, to);
      const high = at + 64 + 16 * half + 8 * odd;
      quants[to + 4] = gatherBits(rows, high, 2 * quarter, 2, 8);
      quants[to + 5] = gatherBits(rows, high + 4, 2 * quarter, 2, 8);
    }
  },
};

function copy(from: Uint16Array, at: number, to: Uint16Array, toAt: number, count: number): void {
  for (let i = 0; i < count; i++) to[toAt + i] = from[at + i] ?? 0;
}

/** 16 bytes with a group in the low and one in the high nibbles. */
function writeTwice(from: Uint16Array, at: number, to: Uint16Array, toAt: number): void {
  writeNibbles(from, at, 0, to, toAt);
  writeNibbles(from, at, 1, to, toAt + 4);
}

/** One nibble of each of 16 bytes, low or high: of every eight, i and i + 4 go to one byte. */
function writeNibbles(
  from: Uint16Array,
  at: number,
  high: number,
  to: Uint16Array,
  toAt: number,
): void {
  for (let word = 0; word < 2; word++) {
    for (let half = 0; half < 2; half++) {
      const first = ((from[at + 4 * word + half] ?? 0) >> (4 * high)) & 0x0f0f;
      const second = ((from[at + 4 * word + 2 + half] ?? 0) >> (4 * high)) & 0x0f0f;
      to[toAt + 2 * word + half] = first | (second << 4);
    }
  }
}

/** The bits `shift` to `shift + width` of each of `count` bytes, side by side in a half. */
function gatherBits(
  from: Uint16Array,
  at: number,
  shift: number,
  width: number,
  count: number,
): number {
  let bits = 0;
  for (let i = 0; i < count; i++) {
    const byte = (from[at + (i >> 1)] ?? 0) >> (8 * (i & 1));
    bits |= ((byte >> shift) & ((1 << width) - 1)) << (width * i);
  }
  return bits;
}

/** Q4_K and Q5_K: two halves, then 6-bit scales and minima of eight parts, which become bytes. */
function writePairs(rows: Uint16Array, at: number, scales: Uint16Array, group: number): void {
  const to = group / 8 * 2 * SUPER_WORDS;
  copy(rows, at, scales, to, 2);
  const byte = (i: number) => ((rows[at + 2 + (i >> 1)] ?? 0) >> (8 * (i & 1))) & 255;
  for (let part = 0; part < 8; part++) {
    const scale = part < 4 ? byte(part) & 63 : (byte(part + 4) & 15) | ((byte(part - 4) >> 6) << 4);
    const minimum = part < 4
      ? byte(part + 4) & 63
      : (byte(part + 4) >> 4) | ((byte(part) >> 6) << 4);
    scales[to + 2 + part] = scale | (minimum << 8);
  }
}
