/**
 * Turns the tensor entries of a header into checked places in the file. Sizes and offsets are
 * computed as `bigint`: a file can claim values whose product or sum no double holds exactly.
 */
import type { ByteSource } from "../source.ts";
import { TENSOR_TYPES, type TensorInfo, type TensorLayout, type TensorType } from "../tensors.ts";
import { type GgufHeader, headerError, type TensorEntry } from "./header.ts";

/** Where `general.alignment` is missing. */
const DEFAULT_ALIGNMENT = 32;
const MAX_ALIGNMENT = 65536;

const TYPES_BY_ID = new Map<number, TensorType>(
  (Object.keys(TENSOR_TYPES) as TensorType[]).map((name) => [TENSOR_TYPES[name].id, name]),
);

/** Types that ggml knows and this project does not compute with; for messages only. */
const OTHER_TYPES: Readonly<Record<number, string>> = {
  10: "Q2_K",
  11: "Q3_K",
  15: "Q8_K",
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  20: "IQ4_NL",
  21: "IQ3_S",
  22: "IQ2_S",
  23: "IQ4_XS",
  24: "I8",
  25: "I16",
  26: "I32",
  27: "I64",
  28: "F64",
  29: "IQ1_M",
  34: "TQ1_0",
  35: "TQ2_0",
  39: "MXFP4",
};

/**
 * Places the tensors of one file.
 *
 * @param index Which of the model's sources the file is, for `TensorInfo.source`.
 * @throws {ModelError} A tensor of a type or shape that is not supported, outside the file, badly
 * aligned, or overlapping another; or a bad `general.alignment`.
 */
export function placeTensors(source: ByteSource, index: number, header: GgufHeader): TensorInfo[] {
  const alignment = readAlignment(source, header);
  const dataStart = Math.ceil(header.byteLength / alignment) * alignment;
  const tensors = header.tensors.map((entry) =>
    placeTensor(source, index, entry, dataStart, alignment)
  );
  refuseOverlap(source, tensors);
  return tensors;
}

function readAlignment(source: ByteSource, header: GgufHeader): number {
  const key = "general.alignment";
  const value = header.metadata.get(key);
  if (value === undefined) return DEFAULT_ALIGNMENT;
  if (value.type !== "uint32") {
    throw headerError(source, key, `must be of type uint32, current type is ${value.type}`);
  }
  const alignment = value.value;
  const isPowerOfTwo = (alignment & (alignment - 1)) === 0;
  if (alignment < 8 || alignment > MAX_ALIGNMENT || !isPowerOfTwo) {
    throw headerError(
      source,
      key,
      `must be a power of two from 8 to ${MAX_ALIGNMENT}, current value is ${alignment}`,
    );
  }
  return alignment;
}

function placeTensor(
  source: ByteSource,
  index: number,
  entry: TensorEntry,
  dataStart: number,
  alignment: number,
): TensorInfo {
  const fail = (problem: string) => headerError(source, entry.name, problem);
  const type = TYPES_BY_ID.get(entry.typeId);
  if (type === undefined) {
    const name = OTHER_TYPES[entry.typeId] ?? `number ${entry.typeId}`;
    throw fail(`has type ${name}, supported are ${Object.keys(TENSOR_TYPES).join(", ")}`);
  }
  const layout: TensorLayout = TENSOR_TYPES[type];
  const shape = `[${entry.dimensions.join(", ")}]`;
  const [columns = 1n, rows = 1n, ...rest] = entry.dimensions;
  if (columns === 0n || rows === 0n) throw fail(`has an empty dimension, its shape is ${shape}`);
  if (rest.some((dimension) => dimension !== 1n)) {
    throw fail(`has shape ${shape}, at most two dimensions are supported`);
  }
  if (columns % BigInt(layout.blockSize) !== 0n) {
    throw fail(`has rows of ${columns}, type ${type} needs a multiple of ${layout.blockSize}`);
  }
  const byteLength = columns / BigInt(layout.blockSize) * BigInt(layout.blockBytes) * rows;
  if (entry.offset % BigInt(alignment) !== 0n) {
    throw fail(`has offset ${entry.offset}, which is no multiple of the alignment ${alignment}`);
  }
  const offset = BigInt(dataStart) + entry.offset;
  if (offset + byteLength > BigInt(source.size)) {
    throw fail(
      `lies outside the file: ${byteLength} bytes at ${offset}, the file has ${source.size}`,
    );
  }
  return {
    name: entry.name,
    type,
    columns: Number(columns),
    rows: Number(rows),
    source: index,
    offset: Number(offset),
    byteLength: Number(byteLength),
  };
}

function refuseOverlap(source: ByteSource, tensors: readonly TensorInfo[]): void {
  const byPlace = tensors.toSorted((a, b) => a.offset - b.offset);
  byPlace.forEach((tensor, i) => {
    const before = byPlace[i - 1];
    if (before !== undefined && tensor.offset < before.offset + before.byteLength) {
      throw headerError(source, tensor.name, `overlaps tensor ${before.name}`);
    }
  });
}
