/** Token ids to bytes and text. Needs nothing but the vocabulary, so that any thread can do it. */
import { bytesOfCharacters } from "./tokenizer_bytes.ts";
import type { PackedStrings } from "./packed_strings.ts";
import { TOKEN_TYPES, type TokenizerSpec } from "./tokenizer_spec.ts";

/** U+2581, which stands for a space in SentencePiece's vocabularies. */
const SPACE = /\u2581/g;

const NOTHING = new Uint8Array();

export class TokenTable {
  readonly #tokens: PackedStrings;
  readonly #types: Uint8Array;
  readonly #spelling: TokenizerSpec["spelling"];
  readonly #encoder = new TextEncoder();
  /** A byte order mark is text like any other. */
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(spec: Pick<TokenizerSpec, "tokens" | "types" | "spelling">) {
    this.#tokens = spec.tokens;
    this.#types = spec.types;
    this.#spelling = spec.spelling;
  }

  get size(): number {
    return this.#tokens.length;
  }

  /** @throws {RangeError} There is no such token. */
  isControl(token: number): boolean {
    this.#spelled(token);
    return this.#types[token] === TOKEN_TYPES.control;
  }

  /**
   * The exact bytes that a token adds to a text; none for control, unknown and unused tokens.
   *
   * @throws {RangeError} There is no such token.
   */
  bytes(token: number): Uint8Array {
    const spelled = this.#spelled(token);
    switch (this.#types[token]) {
      case TOKEN_TYPES.normal:
        return this.#spelling === "bytes"
          ? bytesOfCharacters(spelled)
          : this.#encoder.encode(spelled.replace(SPACE, " "));
      case TOKEN_TYPES.byte:
        return Uint8Array.of(parseInt(spelled.slice(3, 5), 16));
      case TOKEN_TYPES.userDefined:
        return this.#encoder.encode(spelled);
      default:
        return NOTHING;
    }
  }

  /**
   * What a token adds to a text, as text, or the name of a token that adds nothing (`<|im_end|>`).
   *
   * @throws {RangeError} There is no such token.
   */
  text(token: number): string {
    const bytes = this.bytes(token);
    return bytes.length > 0 ? this.#decoder.decode(bytes) : this.#spelled(token);
  }

  /**
   * The text of a sequence of tokens; bytes that are no UTF-8 become U+FFFD.
   *
   * @param special Whether control, unknown and unused tokens appear by their names.
   * @throws {RangeError} There is no such token.
   */
  decode(tokens: ArrayLike<number>, special: boolean): string {
    const parts: Uint8Array[] = [];
    let size = 0;
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i] ?? -1;
      let bytes = this.bytes(token);
      if (special && bytes.length === 0) bytes = this.#encoder.encode(this.#spelled(token));
      parts.push(bytes);
      size += bytes.length;
    }
    const whole = new Uint8Array(size);
    let end = 0;
    for (const bytes of parts) {
      whole.set(bytes, end);
      end += bytes.length;
    }
    return this.#decoder.decode(whole);
  }

  /** The token as the vocabulary spells it. */
  #spelled(token: number): string {
    const spelled = this.#tokens.at(token);
    if (spelled !== undefined) return spelled;
    throw new RangeError(
      `Cannot look up token: current value is ${token}, must be an integer from 0 to ${
        this.size - 1
      }`,
    );
  }
}
