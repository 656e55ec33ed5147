/** How much text one token may stand for: a bound on the tokens of a text before it is encoded. */
import { TOKEN_TYPES, type TokenizerSpec } from "./tokenizer_spec.ts";

/**
 * Most UTF-16 units that one token may stand for. A character has no more of them than UTF-8 bytes.
 *
 * @returns Infinity where text may go without leaving a token: by normalizers and pre-tokenizers,
 * unknown characters that fuse, added tokens that take in the whitespace around them.
 */
export function longestToken(spec: TokenizerSpec): number {
  // Texts that can be cut at words go as they are through a pre-tokenizer that drops nothing.
  const shrinks = !spec.cutAtWords || spec.spelling !== "bytes" ||
    spec.added.some(({ stripLeft, stripRight }) => stripLeft || stripRight);
  if (shrinks) return Infinity;
  // A normal token has a character for each byte, the others are spelled as they are.
  return spec.types.reduce((longest, type, id) => {
    // A character has no more UTF-16 units than bytes of UTF-8.
    if (type === TOKEN_TYPES.unused || spec.tokens.bytesOf(id) <= longest) return longest;
    return Math.max(longest, spec.tokens.at(id)?.length ?? 0);
  }, 1);
}
