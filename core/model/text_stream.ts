/**
 * Tokens to text, as it becomes certain: never a part of a character, never a part of a stop string.
 * What it gives, joined, is what decoding all tokens at once gives, cut before the stop string.
 */
import { StopStrings } from "./stop_strings.ts";
import type { Tokenizer } from "./tokenizer.ts";

/**
 * The text of one generation.
 *
 * The stop string that ends first wins; of several that end together, the longest.
 *
 * @example
 * ```ts
 * const text = new TextStream(tokenizer, ["\nUser:"]);
 * for (const token of tokens) {
 *   show(text.push(token));
 *   if (text.stopped) break;
 * }
 * show(text.finish());
 * ```
 */
export class TextStream {
  readonly #tokenizer: Pick<Tokenizer, "tokenBytes">;
  readonly #stops: StopStrings;
  /** Keeps the bytes of an incomplete character. */
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #state: number;
  /** Text that may be the beginning of a stop string. */
  #held = "";
  #stopString: string | undefined;

  /** @throws {RangeError} A stop string is empty. */
  constructor(tokenizer: Pick<Tokenizer, "tokenBytes">, stops: readonly string[] = []) {
    this.#tokenizer = tokenizer;
    this.#stops = new StopStrings(stops);
    this.#state = this.#stops.start;
  }

  /** The stop string that ended the text. */
  get stopString(): string | undefined {
    return this.#stopString;
  }

  /** Whether a stop string ended the text; nothing comes out after it. */
  get stopped(): boolean {
    return this.#stopString !== undefined;
  }

  /** The text that has become certain with this token, possibly empty. */
  push(token: number): string {
    if (this.stopped) return "";
    return this.#take(this.#decoder.decode(this.#tokenizer.tokenBytes(token), { stream: true }));
  }

  /** What was held back, at the end of the tokens; bytes of no whole character are U+FFFD. */
  finish(): string {
    if (this.stopped) return "";
    const certain = this.#take(this.#decoder.decode());
    const held = this.#held;
    this.#held = "";
    return certain + held;
  }

  #take(text: string): string {
    const whole = this.#held + text;
    for (let end = this.#held.length; end < whole.length; end++) {
      this.#state = this.#stops.step(this.#state, whole.charCodeAt(end));
      const length = this.#stops.match(this.#state);
      if (length > 0) {
        const start = end + 1 - length;
        this.#stopString = whole.slice(start, end + 1);
        this.#held = "";
        return whole.slice(0, start);
      }
    }
    const certain = whole.length - this.#stops.held(this.#state);
    this.#held = whole.slice(certain);
    return whole.slice(0, certain);
  }
}
