/**
 * The value types of GGUF metadata, as the GGUF specification numbers them, and how their values are
 * held in memory: numeric arrays as typed arrays, 64-bit integers as `bigint`, nothing rounded, arrays
 * of strings in one piece.
 */
import type { PackedStrings } from "../packed_strings.ts";

/** Type ids of metadata values. */
export const GGUF_TYPE = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const;

export type GgufTypeName = keyof typeof GGUF_TYPE;

/** Value types whose values have a fixed width. */
export type GgufNumberType = Exclude<GgufTypeName, "string" | "array">;

/** Bytes of one value, for the types of fixed width. */
export const NUMBER_BYTES: Readonly<Record<GgufNumberType, number>> = {
  uint8: 1,
  int8: 1,
  uint16: 2,
  int16: 2,
  uint32: 4,
  int32: 4,
  float32: 4,
  bool: 1,
  uint64: 8,
  int64: 8,
  float64: 8,
};

/** Elements of a numeric array; booleans are bytes of 0 or 1. */
export type GgufNumbers =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigUint64Array
  | BigInt64Array;

/** An array value; `elements` follows from `elementType`. */
export type GgufArray =
  | { readonly type: "array"; readonly elementType: "string"; readonly elements: PackedStrings }
  | {
    readonly type: "array";
    readonly elementType: "array";
    readonly elements: readonly GgufArray[];
  }
  | {
    readonly type: "array";
    readonly elementType: GgufNumberType;
    readonly elements: GgufNumbers;
  };

export type GgufValue =
  | {
    readonly type: Exclude<GgufNumberType, "bool" | "uint64" | "int64">;
    readonly value: number;
  }
  | { readonly type: "uint64" | "int64"; readonly value: bigint }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | GgufArray;

const TYPE_NAMES = new Map<number, GgufTypeName>(
  (Object.keys(GGUF_TYPE) as GgufTypeName[]).map((name) => [GGUF_TYPE[name], name]),
);

/** The value type that an id stands for, or `undefined` where the specification has none. */
export function typeName(id: number): GgufTypeName | undefined {
  return TYPE_NAMES.get(id);
}
