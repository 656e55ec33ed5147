/**
 * Keeps control tokens that a user writes from becoming control tokens. Before a template sees a
 * message, a mark that occurs nowhere else goes into each control token's text, and beside what could
 * become one together with the template's own text; the rendered prompt is then split at the whole
 * control tokens, which only the template can have written, and the marks are taken out.
 */
import { RequestError } from "../errors.ts";

/** A piece of a rendered prompt: a control token's text, or plain text in which none may be seen. */
export interface PromptSegment {
  readonly text: string;
  readonly control: boolean;
}

/** Private-use characters: they mean nothing to anyone, so that some are free in every text. */
const PRIVATE_USE = { first: 0xe000, last: 0xf8ff };

export class ControlGuard {
  /** Any control token's text, the longest that is there; matches nothing where there are none. */
  readonly #control: RegExp;
  /** What control tokens begin with and end with, without the whole. */
  readonly #beginnings = new Set<string>();
  readonly #endings = new Set<string>();
  readonly #longest: number;

  /**
   * @param controlTexts Texts of the model's control tokens. Those of a single character cannot be
   * told from text and stay text.
   */
  constructor(controlTexts: readonly string[]) {
    const texts = controlTexts.filter((text) => text.length > 1)
      .sort((a, b) => b.length - a.length);
    const escaped = texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    this.#control = new RegExp(escaped.join("|") || "(?!)", "g");
    this.#longest = texts[0]?.length ?? 0;
    for (const text of texts) {
      for (let at = 1; at < text.length; at++) {
        this.#beginnings.add(text.slice(0, at));
        this.#endings.add(text.slice(at));
      }
    }
  }

  /**
   * A mark that occurs in none of the texts.
   *
   * @throws {RequestError} They use all private-use characters.
   */
  chooseMark(texts: readonly string[]): string {
    const used = new Set<number>();
    for (const text of texts) {
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i);
        if (unit >= PRIVATE_USE.first && unit <= PRIVATE_USE.last) used.add(unit);
      }
    }
    for (let unit = PRIVATE_USE.first; unit <= PRIVATE_USE.last; unit++) {
      if (!used.has(unit)) return String.fromCharCode(unit);
    }
    throw new RequestError(
      "Cannot render messages: they use every private-use character, one must be free",
      { param: "messages" },
    );
  }

  /** Puts marks into a message's text; whitespace at its ends stays there, for templates that trim. */
  protect(text: string, mark: string): string {
    let safe = text;
    // Breaking one control token may leave another that overlaps it.
    while (safe.search(this.#control) >= 0) {
      safe = safe.replace(this.#control, (found) => found.slice(0, -1) + mark + found.slice(-1));
    }
    const body = safe.trim();
    const start = safe.length - safe.trimStart().length;
    const head = this.#completes(body) ? mark : "";
    const tail = this.#begins(body) ? mark : "";
    return safe.slice(0, start) + head + body + tail + safe.slice(start + body.length);
  }

  /** Splits a rendered prompt at its control tokens and removes the marks; no segment is empty. */
  split(prompt: string, mark: string): PromptSegment[] {
    const segments: PromptSegment[] = [];
    const addPlain = (text: string) => {
      const plain = text.replaceAll(mark, "");
      if (plain !== "") segments.push({ text: plain, control: false });
    };
    let end = 0;
    for (const { 0: text, index } of prompt.matchAll(this.#control)) {
      addPlain(prompt.slice(end, index));
      segments.push({ text, control: true });
      end = index + text.length;
    }
    addPlain(prompt.slice(end));
    return segments;
  }

  /** Whether the text starts with the rest of a control token. */
  #completes(text: string): boolean {
    return this.#sizes(text).some((size) => this.#endings.has(text.slice(0, size)));
  }

  /** Whether the text ends with the beginning of a control token. */
  #begins(text: string): boolean {
    return this.#sizes(text).some((size) => this.#beginnings.has(text.slice(-size)));
  }

  /** Sizes that a part of a control token at an end of the text may have. */
  #sizes(text: string): number[] {
    const most = Math.min(text.length, this.#longest - 1);
    return Array.from({ length: Math.max(0, most) }, (_, index) => index + 1);
  }
}
