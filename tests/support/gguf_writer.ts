/**
 * Writes GGUF files for tests, good ones and bad ones: every count, offset and type can be given
 * instead of computed, and a value may be any bytes.
 */
import { GGUF_TYPE, type GgufTypeName } from "../../core/model/gguf/values.ts";

/** A metadata value as it will stand in the file. */
export interface EncodedValue {
  readonly type: number;
  readonly bytes: Uint8Array;
}

export interface GgufTensorSpec {
  readonly name: string;
  /** The innermost first. */
  readonly dimensions: readonly (number | bigint)[];
  readonly type: number;
  readonly data: Uint8Array;
  /** In place of the offset that the data gets. */
  readonly offset?: bigint;
}

export interface GgufSpec {
  readonly magic?: string;
  readonly version?: number;
  readonly alignment?: number;
  readonly metadata?: readonly (readonly [key: string, value: EncodedValue])[];
  readonly tensors?: readonly GgufTensorSpec[];
  /** In place of the number of pairs and tensors given. */
  readonly pairCount?: bigint;
  readonly tensorCount?: bigint;
}

/** Joins byte arrays. */
export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export function u32Bytes(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

export function u64Bytes(value: number | bigint): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

/** A string with its length before it; `length` lies about it. */
export function stringBytes(text: string, length?: bigint): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  return concat([u64Bytes(length ?? bytes.length), bytes]);
}

const text = (value: string): EncodedValue => ({
  type: GGUF_TYPE.string,
  bytes: stringBytes(value),
});

const uint32 = (value: number): EncodedValue => ({
  type: GGUF_TYPE.uint32,
  bytes: u32Bytes(value),
});

const float32 = (value: number): EncodedValue => ({
  type: GGUF_TYPE.float32,
  bytes: new Uint8Array(Float32Array.of(value).buffer),
});

const bool = (value: boolean): EncodedValue => ({
  type: GGUF_TYPE.bool,
  bytes: Uint8Array.of(value ? 1 : 0),
});

/** An array of elements that are already encoded; `count` lies about how many they are. */
function array(
  elementType: number,
  elements: readonly Uint8Array[],
  count?: bigint,
): EncodedValue {
  const head = [u32Bytes(elementType), u64Bytes(count ?? elements.length)];
  return { type: GGUF_TYPE.array, bytes: concat([...head, ...elements]) };
}

const strings = (values: readonly string[]): EncodedValue =>
  array(GGUF_TYPE.string, values.map((value) => stringBytes(value)));

const int32s = (values: readonly number[]): EncodedValue =>
  array(GGUF_TYPE.int32, values.map((value) => u32Bytes(value)));

const raw = (type: GgufTypeName | number, bytes: Uint8Array): EncodedValue => ({
  type: typeof type === "number" ? type : GGUF_TYPE[type],
  bytes,
});

/** Encoders of metadata values. */
export const gguf = { text, uint32, float32, bool, array, strings, int32s, raw } as const;

/** The bytes of a file; tensor data in the order given, each at the next aligned offset. */
export function writeGguf(spec: GgufSpec): Uint8Array<ArrayBuffer> {
  const { metadata = [], tensors = [], alignment = 32 } = spec;
  let offset = 0;
  const table = tensors.map((tensor) => {
    const entry = tensorEntry(tensor, offset);
    offset += roundUp(tensor.data.length, alignment);
    return entry;
  });
  const head = concat([
    new TextEncoder().encode(spec.magic ?? "GGUF"),
    u32Bytes(spec.version ?? 3),
    u64Bytes(spec.tensorCount ?? tensors.length),
    u64Bytes(spec.pairCount ?? metadata.length),
    ...metadata.map(([key, { type, bytes }]) => concat([stringBytes(key), u32Bytes(type), bytes])),
    ...table,
  ]);
  const data = tensors.map((tensor) => padded(tensor.data, alignment));
  return concat([padded(head, alignment), ...data]);
}

function tensorEntry(tensor: GgufTensorSpec, offset: number): Uint8Array {
  return concat([
    stringBytes(tensor.name),
    u32Bytes(tensor.dimensions.length),
    ...tensor.dimensions.map(u64Bytes),
    u32Bytes(tensor.type),
    u64Bytes(tensor.offset ?? offset),
  ]);
}

function padded(bytes: Uint8Array, alignment: number): Uint8Array {
  return concat([bytes, new Uint8Array(roundUp(bytes.length, alignment) - bytes.length)]);
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
