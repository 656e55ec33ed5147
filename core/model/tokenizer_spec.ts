/**
 * What a tokenizer is, as data: everything that turns text into token ids and back, whatever kind of
 * file it was read from. `tokenizer_gguf.ts` and `tokenizer_json.ts` write it, `TokenTable` decodes
 * by it, and the Rust crate in `wasm/tokenizers` encodes by it.
 */
import type { PackedStrings } from "./packed_strings.ts";

/** Kinds of tokens; the numbers are those of `tokenizer.ggml.token_type`. */
export const TOKEN_TYPES = {
  normal: 1,
  unknown: 2,
  control: 3,
  userDefined: 4,
  unused: 5,
  byte: 6,
} as const;

export type Json = null | boolean | number | string | readonly Json[] | {
  readonly [key: string]: Json;
};

/** How the pieces of a text become tokens. The fields are those of the Rust side. */
export type TokenModel =
  /** Byte pair encoding by ranked merges. */
  | {
    readonly type: "bpe";
    /** A whole word that is a token is taken without looking at merges. */
    readonly ignoreMerges: boolean;
    /** Characters outside the vocabulary are spelled in byte tokens, `<0x0A>`. */
    readonly byteFallback: boolean;
    readonly fuseUnknown: boolean;
    readonly unknown: number | null;
    readonly continuingPrefix: string | null;
    readonly wordSuffix: string | null;
  }
  /** SentencePiece's byte pair encoding, whose merges are ordered by the score of their result. */
  | {
    readonly type: "sentencePiece";
    /** A text, and what follows an added token, starts with a space. */
    readonly spacePrefix: boolean;
    readonly unknown: number | null;
    /** Ids of the 256 byte tokens; empty where not all exist. */
    readonly bytes: readonly number[];
  }
  /** Unigram language model (arXiv 1804.10959). */
  | { readonly type: "unigram"; readonly unknown: number | null; readonly byteFallback: boolean };

/** A token that is found in the text before anything else looks at it. */
export interface AddedToken {
  readonly id: number;
  readonly text: string;
  /** Seen only where the caller asks for control tokens. */
  readonly control: boolean;
  /** Takes in the whitespace before it. */
  readonly stripLeft: boolean;
  /** Takes in the whitespace after it. */
  readonly stripRight: boolean;
}

export interface TokenizerSpec {
  /** The text of each token as the vocabulary spells it; its index is the token's id. */
  readonly tokens: PackedStrings;
  /** One of `TOKEN_TYPES` a token. */
  readonly types: Uint8Array;
  /**
   * How a normal token spells its bytes: each character stands for a byte, as GPT-2 has it, or the
   * text itself with U+2581 for a space.
   */
  readonly spelling: "bytes" | "spaces";
  /** One a token, or empty for models without scores. */
  readonly scores: Float32Array;
  /** "left right", best first. */
  readonly merges: PackedStrings;
  readonly model: TokenModel;
  /** As in a `tokenizer.json`. */
  readonly normalizer: Json;
  /** As in a `tokenizer.json`. */
  readonly preTokenizer: Json;
  /** Whether the pre-tokenizer splits before every space that follows another character, and
   * between a letter and punctuation or whitespace, so that long texts can be cut there. */
  readonly cutAtWords: boolean;
  readonly added: readonly AddedToken[];
  /** Tokens that go before a text, such as BOS. */
  readonly before: readonly number[];
  /** Tokens that go after a text, such as EOS. */
  readonly after: readonly number[];
}
