/**
 * The alphabet of byte-level vocabularies: a printable character for each byte. Bytes that are
 * printable in Latin-1 stand for themselves; the others take the characters from U+0100 on, in
 * order. Defined by GPT-2's `bytes_to_unicode`.
 */

const BYTES: ReadonlyMap<number, number> = alphabet();

function alphabet(): Map<number, number> {
  const bytes = new Map<number, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
    bytes.set(printable ? byte : next++, byte);
  }
  return bytes;
}

/** The bytes that a token of such a vocabulary spells; other characters stand for themselves. */
export function bytesOfCharacters(characters: string): Uint8Array {
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; i++) {
    const byte = BYTES.get(characters.charCodeAt(i));
    if (byte === undefined) return new TextEncoder().encode(characters);
    bytes[i] = byte;
  }
  return bytes;
}
