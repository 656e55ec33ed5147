/**
 * GGUF metadata with typed access. A getter takes the key and says what it expects; a value of
 * another type is a `ModelError` that names the key, never a silent conversion.
 */
import { ModelError } from "../../errors.ts";
import type { PackedStrings } from "../packed_strings.ts";
import type { GgufArray, GgufNumbers, GgufValue } from "./values.ts";

/** Left out by a caller who accepts no missing key. */
type Fallback<T> = [fallback?: T];

/**
 * The key-value pairs of a model file.
 *
 * Every getter throws a `ModelError` for a missing key, unless a second argument says what to answer
 * instead; `undefined` is an answer too.
 *
 * @example
 * ```ts
 * const base = metadata.float("llama.rope.freq_base", 10000);
 * const template = metadata.string("tokenizer.chat_template", undefined);
 * ```
 */
export class GgufMetadata {
  readonly #file: string;
  readonly #values: ReadonlyMap<string, GgufValue>;

  /** @param file The model's file name, for messages. */
  constructor(file: string, values: ReadonlyMap<string, GgufValue>) {
    this.#file = file;
    this.#values = values;
  }

  get file(): string {
    return this.#file;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  keys(): IterableIterator<string> {
    return this.#values.keys();
  }

  /** The value as it stands in the file, or `undefined`. */
  get(key: string): GgufValue | undefined {
    return this.#values.get(key);
  }

  string(key: string): string;
  string<T>(key: string, fallback: T): string | T;
  string<T>(key: string, ...fallback: Fallback<T>): string | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    return value.type === "string" ? value.value : this.#mismatch(key, "a string", value);
  }

  bool(key: string): boolean;
  bool<T>(key: string, fallback: T): boolean | T;
  bool<T>(key: string, ...fallback: Fallback<T>): boolean | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    return value.type === "bool" ? value.value : this.#mismatch(key, "a boolean", value);
  }

  /** An integer from 0 to 2^53 - 1, of whichever integer type. */
  uint(key: string): number;
  uint<T>(key: string, fallback: T): number | T;
  uint<T>(key: string, ...fallback: Fallback<T>): number | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    const wanted = "an integer from 0 to 2^53 - 1";
    if (
      value.type === "array" || value.type === "string" || value.type === "bool" ||
      value.type === "float32" || value.type === "float64"
    ) return this.#mismatch(key, wanted, value);
    const number = Number(value.value);
    return Number.isSafeInteger(number) && number >= 0
      ? number
      : this.#mismatch(key, wanted, value);
  }

  /** A finite floating-point number. */
  float(key: string): number;
  float<T>(key: string, fallback: T): number | T;
  float<T>(key: string, ...fallback: Fallback<T>): number | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    const isFloat = value.type === "float32" || value.type === "float64";
    return isFloat && Number.isFinite(value.value)
      ? value.value
      : this.#mismatch(key, "a finite floating-point number", value);
  }

  strings(key: string): PackedStrings;
  strings<T>(key: string, fallback: T): PackedStrings | T;
  strings<T>(key: string, ...fallback: Fallback<T>): PackedStrings | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    return value.type === "array" && value.elementType === "string"
      ? value.elements
      : this.#mismatch(key, "an array of strings", value);
  }

  /** An array of integers of at most 32 bits each, for example `tokenizer.ggml.token_type`. */
  ints(key: string): ArrayLike<number>;
  ints<T>(key: string, fallback: T): ArrayLike<number> | T;
  ints<T>(key: string, ...fallback: Fallback<T>): ArrayLike<number> | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    const elements = value.type === "array" ? smallInts(value) : undefined;
    return elements ?? this.#mismatch(key, "an array of integers of at most 32 bits", value);
  }

  /** An array of floating-point numbers, for example `tokenizer.ggml.scores`. */
  floats(key: string): Float32Array | Float64Array;
  floats<T>(key: string, fallback: T): Float32Array | Float64Array | T;
  floats<T>(key: string, ...fallback: Fallback<T>): Float32Array | Float64Array | T | undefined {
    const value = this.#find(key, fallback);
    if (value === undefined) return fallback[0];
    const elements = value.type === "array" ? value.elements : undefined;
    return elements instanceof Float32Array || elements instanceof Float64Array
      ? elements
      : this.#mismatch(key, "an array of floating-point numbers", value);
  }

  /** A `ModelError` about one key; `problem` continues "Cannot use FILE: KEY …". */
  error(key: string, problem: string): ModelError {
    return new ModelError(key, `Cannot use ${this.#file}: ${key} ${problem}`);
  }

  #find<T>(key: string, fallback: Fallback<T>): GgufValue | undefined {
    const value = this.#values.get(key);
    if (value === undefined && fallback.length === 0) throw this.error(key, "is missing");
    return value;
  }

  #mismatch(key: string, wanted: string, value: GgufValue): never {
    throw this.error(key, `must be ${wanted}, current value is ${describe(value)}`);
  }
}

function smallInts(
  value: GgufArray,
): Exclude<GgufNumbers, BigUint64Array | BigInt64Array> | undefined {
  switch (value.elementType) {
    case "uint8":
    case "int8":
    case "uint16":
    case "int16":
    case "uint32":
    case "int32":
      return value.elements as Exclude<GgufNumbers, BigUint64Array | BigInt64Array>;
    default:
      return undefined;
  }
}

/** A value in a few words, whatever its size. */
function describe(value: GgufValue): string {
  if (value.type === "array") return `an array of ${value.elements.length} ${value.elementType}`;
  if (value.type !== "string") return `${value.type} ${value.value}`;
  const text = value.value.length > 40 ? `${value.value.slice(0, 40)}…` : value.value;
  return `the string ${JSON.stringify(text)}`;
}
