/**
 * Reads the primitives of a GGUF header from a window onto the start of an untrusted file. Every
 * length is held against the bytes that the file has left before anything is allocated, so a bad
 * file costs no more memory than its own size.
 */
import { ModelError } from "../../errors.ts";
import { PackedStrings } from "../packed_strings.ts";
import {
  GGUF_TYPE,
  type GgufArray,
  type GgufNumbers,
  type GgufNumberType,
  type GgufTypeName,
  type GgufValue,
  NUMBER_BYTES,
  typeName,
} from "./values.ts";

/** Arrays in arrays beyond this depth are refused. */
const MAX_DEPTH = 4;

/** Fewest bytes of an array of strings' element: its length. */
const STRING_HEAD = 8;

/** Fewest bytes of a nested array: its element type and its count. */
const ARRAY_HEAD = 12;

/** Thrown when the window ends before the value does; the file goes on to `until` or further. */
export class WindowEnd {
  constructor(readonly until: number) {}
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Cursor {
  /** Next byte to be read; also an offset in the file. */
  position = 0;
  /** What is being read, for errors: a key, a tensor's name, or `header`. */
  subject = "header";
  readonly #file: string;
  readonly #end: number;
  #bytes: Uint8Array;
  #view: DataView;

  /**
   * @param file Name, for errors.
   * @param end Bytes in the file that a header may use.
   */
  constructor(file: string, end: number) {
    this.#file = file;
    this.#end = end;
    this.#bytes = new Uint8Array(0);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Goes on with a longer window; it starts with the same bytes. */
  setWindow(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** A `ModelError` about the current subject; `problem` continues "Cannot read FILE: SUBJECT …". */
  error(problem: string): ModelError {
    return new ModelError(this.subject, `Cannot read ${this.#file}: ${this.subject} ${problem}`);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true);
  }

  /**
   * A count of things that take at least `bytesEach` bytes each in the rest of the file.
   *
   * @param index Of what has that many things, where it is one of many.
   */
  count(what: string, bytesEach: number, index?: number): number {
    const at = this.#take(8);
    const high = this.#view.getUint32(at + 4, true);
    const most = Math.floor((this.#end - this.position) / bytesEach);
    // Not exact above 2^53, but then it is above `most` all the same.
    const value = high * 2 ** 32 + this.#view.getUint32(at, true);
    if (value > most) {
      const exact = this.#view.getBigUint64(at, true);
      const things = index === undefined ? what : `${what} ${index}`;
      throw this.error(`has ${exact} ${things}, the rest of the file has room for ${most}`);
    }
    return value;
  }

  string(): string {
    const length = this.count("bytes of text", 1);
    const start = this.#take(length);
    return this.#decode(this.#bytes.subarray(start, start + length));
  }

  /** A metadata value, its type first. */
  value(): GgufValue {
    const type = this.#type();
    switch (type) {
      case "string":
        return { type, value: this.string() };
      case "array":
        return this.#array(1);
      case "bool":
        return { type, value: this.#numbers(type, 1)[0] === 1 };
      case "uint64":
        return { type, value: this.u64() };
      case "int64":
        return { type, value: BigInt.asIntN(64, this.u64()) };
      default:
        return { type, value: Number(this.#numbers(type, 1)[0]) };
    }
  }

  #type(): GgufTypeName {
    const id = this.u32();
    const name = typeName(id);
    if (name === undefined) {
      throw this.error(`has value type ${id}, allowed are 0 to ${GGUF_TYPE.float64}`);
    }
    return name;
  }

  #array(depth: number): GgufArray {
    if (depth > MAX_DEPTH) throw this.error(`nests arrays deeper than ${MAX_DEPTH}`);
    const elementType = this.#type();
    if (elementType === "string") {
      const count = this.count("strings", STRING_HEAD);
      return { type: "array", elementType, elements: this.#strings(count) };
    }
    if (elementType === "array") {
      const count = this.count("arrays", ARRAY_HEAD);
      const elements: GgufArray[] = [];
      for (let i = 0; i < count; i++) elements.push(this.#array(depth + 1));
      return { type: "array", elementType, elements };
    }
    const count = this.count(`${elementType} elements`, NUMBER_BYTES[elementType]);
    return { type: "array", elementType, elements: this.#numbers(elementType, count) };
  }

  /** Copies numbers out of the window, so that they are aligned and outlive it. */
  #numbers(type: GgufNumberType, count: number): GgufNumbers {
    const start = this.#take(count * NUMBER_BYTES[type]);
    const copy = this.#bytes.slice(start, this.position);
    if (type === "bool" && copy.some((byte) => byte > 1)) {
      throw this.error("has a boolean that is neither 0 nor 1");
    }
    return typedArray(type, copy.buffer);
  }

  /** Two passes: the lengths tell how much there is, then the texts move together. */
  #strings(count: number): PackedStrings {
    const first = this.position;
    let length = 0;
    for (let i = 0; i < count; i++) {
      const bytes = this.count("bytes in string", 1, i);
      this.#take(bytes);
      length += bytes;
    }
    const bytes = new Uint8Array(length);
    const ends = new Uint32Array(count);
    let from = first;
    let end = 0;
    for (let i = 0; i < count; i++) {
      const length = this.#view.getUint32(from, true);
      from += STRING_HEAD;
      // Joined, two halves of a character would pass.
      if (length > 0 && isContinuation(this.#bytes[from])) {
        throw this.error(`has a string that is not UTF-8, number ${i}`);
      }
      // Byte by byte: strings are short, and views of them would be most of the memory in use.
      for (const stop = from + length; from < stop; from++) bytes[end++] = this.#bytes[from] ?? 0;
      ends[i] = end;
    }
    this.#decode(bytes);
    return new PackedStrings(bytes, ends);
  }

  #decode(bytes: Uint8Array): string {
    try {
      return utf8.decode(bytes);
    } catch (cause) {
      throw this.error(`has text that is not UTF-8 (${(cause as Error).message})`);
    }
  }

  /** Moves on by `length` bytes and returns where they start. */
  #take(length: number): number {
    const start = this.position;
    const end = start + length;
    if (end > this.#end) {
      throw this.error(`is cut off: needs bytes ${start} to ${end}, the file ends at ${this.#end}`);
    }
    if (end > this.#bytes.length) throw new WindowEnd(end);
    this.position = end;
    return start;
  }
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** GGUF is little endian, and so is every machine that runs WASM or WebGPU. */
function typedArray(type: GgufNumberType, buffer: ArrayBuffer): GgufNumbers {
  switch (type) {
    case "bool":
    case "uint8":
      return new Uint8Array(buffer);
    case "int8":
      return new Int8Array(buffer);
    case "uint16":
      return new Uint16Array(buffer);
    case "int16":
      return new Int16Array(buffer);
    case "uint32":
      return new Uint32Array(buffer);
    case "int32":
      return new Int32Array(buffer);
    case "float32":
      return new Float32Array(buffer);
    case "float64":
      return new Float64Array(buffer);
    case "uint64":
      return new BigUint64Array(buffer);
    case "int64":
      return new BigInt64Array(buffer);
  }
}
