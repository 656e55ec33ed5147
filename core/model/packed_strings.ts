/**
 * Many strings in two arrays, as vocabularies and merges lie in memory and cross to Rust: a tenth of
 * what as many objects take, and nothing for a garbage collector to look through.
 */

const encoder = new TextEncoder();
/** A byte order mark is text like any other. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export class PackedStrings implements Iterable<string> {
  /**
   * @param bytes The UTF-8 of all strings, one after the other.
   * @param ends Where each string ends in `bytes`.
   */
  constructor(readonly bytes: Uint8Array, readonly ends: Uint32Array) {}

  static from(strings: readonly string[]): PackedStrings {
    const ends = new Uint32Array(strings.length);
    // A UTF-16 unit takes at most three bytes of UTF-8.
    const units = strings.reduce((sum, string) => sum + string.length, 0);
    const bytes = new Uint8Array(3 * units);
    let end = 0;
    strings.forEach((string, index) => {
      end += encoder.encodeInto(string, bytes.subarray(end)).written;
      ends[index] = end;
    });
    return new PackedStrings(bytes.slice(0, end), ends);
  }

  get length(): number {
    return this.ends.length;
  }

  /** The string at `index`, or `undefined` where there is none. */
  at(index: number): string | undefined {
    const end = this.ends[index];
    return end === undefined
      ? undefined
      : decoder.decode(this.bytes.subarray(this.ends[index - 1] ?? 0, end));
  }

  /** How many bytes of UTF-8 it has; 0 where there is none. */
  bytesOf(index: number): number {
    const end = this.ends[index];
    return end === undefined ? 0 : end - (this.ends[index - 1] ?? 0);
  }

  /** Where `string` is for the first time, or -1. */
  indexOf(string: string): number {
    const wanted = encoder.encode(string);
    let start = 0;
    for (let index = 0; index < this.length; index++) {
      const end = this.ends[index] ?? 0;
      const same = end - start === wanted.length &&
        wanted.every((byte, at) => this.bytes[start + at] === byte);
      if (same) return index;
      start = end;
    }
    return -1;
  }

  /** The same strings, but an empty one wherever `keep` says so. */
  keepIf(keep: (index: number) => boolean): PackedStrings {
    const bytes = new Uint8Array(this.bytes.length);
    let end = 0;
    let from = 0;
    const ends = this.ends.map((stop, index) => {
      const kept = keep(index);
      for (; from < stop; from++) if (kept) bytes[end++] = this.bytes[from] ?? 0;
      return end;
    });
    return new PackedStrings(bytes.subarray(0, end), ends);
  }

  *[Symbol.iterator](): IterableIterator<string> {
    for (let index = 0; index < this.length; index++) yield this.at(index) ?? "";
  }
}
