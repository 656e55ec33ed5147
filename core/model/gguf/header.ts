/**
 * Reads the header of one GGUF file (v2 and v3, little endian): metadata and tensor table, as they
 * stand there. The layout is that of the GGUF specification in ggml's documentation.
 *
 * Own code rather than `@huggingface/gguf`: that reader allocates by the counts that a file claims,
 * rounds 64-bit numbers to doubles, lets duplicate keys overwrite each other, and wants a URL or a
 * path. Files here are untrusted and may come from any `ByteSource`.
 */
import { ModelError } from "../../errors.ts";
import type { ByteSource } from "../source.ts";
import { Cursor, WindowEnd } from "./cursor.ts";
import type { GgufValue } from "./values.ts";

/** First window onto a file. Doubled until the header fits; most headers are 1 to 8 MiB. */
const FIRST_WINDOW = 1 << 20;

/** A header beyond this is refused: a vocabulary of 2^20 tokens with merges takes a tenth of it. */
const MAX_HEADER = 256 << 20;

/** "GGUF", read as a little-endian number. */
const MAGIC = 0x46554747;

const MAX_KEY_LENGTH = 65535;
const MAX_DIMENSIONS = 4;

/** Fewest bytes of a pair: key length, one byte of key, value type, one byte of value. */
const PAIR_BYTES = 8 + 1 + 4 + 1;

/** Fewest bytes of a tensor's entry: name length, dimension count, one dimension, type, offset. */
const TENSOR_BYTES = 8 + 4 + 8 + 4 + 8;

/** A tensor as the file describes it; only what the header alone can tell is checked. */
export interface TensorEntry {
  readonly name: string;
  /** Elements along each dimension, the innermost first; 1 to 4 of them. */
  readonly dimensions: readonly bigint[];
  readonly typeId: number;
  /** Relative to the start of the file's tensor data. */
  readonly offset: bigint;
}

export interface GgufHeader {
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: readonly TensorEntry[];
  /** Bytes up to the end of the tensor table, before the padding that precedes the data. */
  readonly byteLength: number;
}

/**
 * Reads a header through a window that grows until the header fits. The weights are not read.
 *
 * @throws {ModelError} The file is no GGUF of version 2 or 3, or its header is malformed.
 */
export async function readHeader(source: ByteSource): Promise<GgufHeader> {
  const end = Math.min(source.size, MAX_HEADER);
  const parser = new HeaderParser(source.name, end);
  let window = new Uint8Array(0);
  let wanted = FIRST_WINDOW;
  for (;;) {
    const larger = new Uint8Array(Math.min(wanted, end));
    larger.set(window);
    await source.read(window.length, larger.subarray(window.length));
    window = larger;
    const shortage = parser.resume(window);
    if (shortage === undefined) return parser.header();
    wanted = Math.max(shortage, 2 * window.length);
  }
}

/** Keeps what it has parsed when the window ends, down to the last whole pair or tensor. */
class HeaderParser {
  readonly #cursor: Cursor;
  readonly #metadata = new Map<string, GgufValue>();
  readonly #tensors = new Map<string, TensorEntry>();
  #start: { version: number; tensors: number; pairs: number } | undefined;

  constructor(file: string, end: number) {
    this.#cursor = new Cursor(file, end);
  }

  /** Parses on; returns how many bytes the window must have for the next step, if it is too short. */
  resume(window: Uint8Array): number | undefined {
    const cursor = this.#cursor;
    cursor.setWindow(window);
    let resumeAt = cursor.position;
    try {
      const { tensors, pairs } = this.#start ??= readStart(cursor);
      while (this.#metadata.size < pairs) {
        resumeAt = cursor.position;
        const [key, value] = readPair(cursor, this.#metadata);
        this.#metadata.set(key, value);
      }
      while (this.#tensors.size < tensors) {
        resumeAt = cursor.position;
        const tensor = readTensor(cursor, this.#tensors);
        this.#tensors.set(tensor.name, tensor);
      }
      return undefined;
    } catch (error) {
      if (!(error instanceof WindowEnd)) throw error;
      cursor.position = resumeAt;
      return error.until;
    }
  }

  header(): GgufHeader {
    return {
      version: this.#start?.version ?? 0,
      metadata: this.#metadata,
      tensors: [...this.#tensors.values()],
      byteLength: this.#cursor.position,
    };
  }
}

function readStart(cursor: Cursor): { version: number; tensors: number; pairs: number } {
  cursor.subject = "header";
  if (cursor.u32() !== MAGIC) throw cursor.error("does not start with GGUF");
  const version = cursor.u32();
  if (version === 0x02000000 || version === 0x03000000) {
    throw cursor.error("is big endian, only little endian is supported");
  }
  if (version !== 2 && version !== 3) {
    throw cursor.error(`has GGUF version ${version}, supported are 2 and 3`);
  }
  const tensors = cursor.count("tensors", TENSOR_BYTES);
  const pairs = cursor.count("metadata pairs", PAIR_BYTES);
  return { version, tensors, pairs };
}

function readPair(
  cursor: Cursor,
  seen: ReadonlyMap<string, GgufValue>,
): readonly [key: string, value: GgufValue] {
  cursor.subject = `metadata key ${seen.size}`;
  const key = cursor.string();
  if (key === "" || key.length > MAX_KEY_LENGTH) {
    throw cursor.error(`has ${key.length} characters, allowed are 1 to ${MAX_KEY_LENGTH}`);
  }
  cursor.subject = key;
  if (seen.has(key)) throw cursor.error("appears twice");
  return [key, cursor.value()];
}

function readTensor(cursor: Cursor, seen: ReadonlyMap<string, TensorEntry>): TensorEntry {
  cursor.subject = `tensor ${seen.size}`;
  const name = cursor.string();
  if (name === "") throw cursor.error("has no name");
  cursor.subject = name;
  if (seen.has(name)) throw cursor.error("appears twice");
  const rank = cursor.u32();
  if (rank < 1 || rank > MAX_DIMENSIONS) {
    throw cursor.error(`has ${rank} dimensions, allowed are 1 to ${MAX_DIMENSIONS}`);
  }
  const dimensions = Array.from({ length: rank }, () => cursor.u64());
  return { name, dimensions, typeId: cursor.u32(), offset: cursor.u64() };
}

/** The file's error for a part that its header does not have. */
export function headerError(source: ByteSource, subject: string, problem: string): ModelError {
  return new ModelError(subject, `Cannot read ${source.name}: ${subject} ${problem}`);
}
