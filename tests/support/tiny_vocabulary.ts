/** The tiny model's vocabulary: three control tokens, the 256 bytes, and a few merges. */

/** Ids 0, 1 and 2, as in SmolLM2. */
export const CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] as const;

/** Merges in order of priority; a space stands between the two halves, `Ġ` for a space itself. */
const MERGES = `
  Ġ t, Ġ a, h e, i n, r e, o n, Ġt he, e r, Ġ s, a t, Ġ w, Ġ o, e n, Ġ c, i t, i s, a n, o r, e s,
  Ġ b, e d, Ġ f, in g, Ġ p, o u, Ġa n, a l, a r, Ġt o, Ġ m, Ġo f, Ġ in, Ġ d, Ġ h, Ġan d, i c, a s,
  l e, Ġt h, i on, o m, l l, en t, Ġ n, Ġ l, s t, Ġ re, v e, Ġ e, r o, l y, Ġb e, Ġ g, Ġ T, c t,
  Ġ S, i d, o t
`.split(/[,\n]/).map((merge) => merge.trim()).filter((merge) => merge !== "");

/** A vocabulary whose size (317) is prime, so that no kernel gets by without handling remainders. */
export function tinyVocabulary(): { tokens: string[]; merges: string[] } {
  const bytes = Array.from({ length: 256 }, (_, byte) => byteCharacter(byte));
  const merged = MERGES.map((merge) => merge.replace(" ", ""));
  return { tokens: [...CONTROL_TOKENS, ...bytes, ...merged], merges: MERGES };
}

/** GPT-2's printable stand-in for a byte: itself where it is printable, else U+0100 and up. */
function byteCharacter(byte: number): string {
  const isPrintable = (b: number) => (b > 32 && b < 127) || (b > 160 && b !== 173);
  if (isPrintable(byte)) return String.fromCodePoint(byte);
  let before = 0;
  for (let b = 0; b < byte; b++) if (!isPrintable(b)) before++;
  return String.fromCodePoint(256 + before);
}
