/** The Tokenizer contract. `wasm/tokenizer.ts` implements it over the Rust crate `tokenizers`. */

export interface EncodeOptions {
  /** Whether the text of control tokens becomes the control token. Default false: it stays text. */
  readonly parseSpecial?: boolean;
  /** Whether to add what the model's metadata asks for around a text (BOS, EOS). Default false. */
  readonly addSpecial?: boolean;
}

export interface Tokenizer {
  readonly vocabularySize: number;
  /** Most UTF-16 units of a text that one token may stand for; Infinity where there is no bound. */
  readonly longestToken: number;
  encode(text: string, options?: EncodeOptions): Uint32Array;
  /**
   * The text of a whole sequence of tokens; bytes that are no UTF-8 become U+FFFD.
   * Control tokens are left out unless `special` asks for their text.
   */
  decode(tokens: ArrayLike<number>, options?: { readonly special?: boolean }): string;
  /** The exact bytes that a token adds to a text; empty for control tokens. */
  tokenBytes(token: number): Uint8Array;
  /** A control token's own text, `<|im_end|>`, or that of any other token. */
  tokenText(token: number): string;
  isControl(token: number): boolean;
}
