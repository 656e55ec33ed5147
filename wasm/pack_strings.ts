/** Many strings in two arrays: how vocabularies and merges cross to Rust in one copy. */

export interface PackedStrings {
  /** The UTF-8 of all strings, one after the other. */
  readonly bytes: Uint8Array;
  /** Where each string ends in `bytes`. */
  readonly ends: Uint32Array;
}

/** @param change What to pack instead of each string; the strings themselves where left out. */
export function packStrings(
  strings: readonly string[],
  change: (string: string, index: number) => string = (string) => string,
): PackedStrings {
  const encoder = new TextEncoder();
  const ends = new Uint32Array(strings.length);
  let bytes = new Uint8Array(8 * strings.length + 64);
  let size = 0;
  strings.forEach((original, index) => {
    const string = change(original, index);
    // A UTF-16 unit takes at most three bytes of UTF-8.
    const most = size + 3 * string.length;
    if (most > bytes.length) {
      const larger = new Uint8Array(Math.max(most, 2 * bytes.length));
      larger.set(bytes);
      bytes = larger;
    }
    size += encoder.encodeInto(string, bytes.subarray(size)).written;
    ends[index] = size;
  });
  return { bytes: bytes.subarray(0, size), ends };
}
