/** One choice of an answer: token events in, pieces of visible text out. Pure and synchronous. */
import { OverloadedError } from "../errors.ts";
import type { EndEvent, PromptEvent, SequenceEvent, TokenEvent } from "../engine/engine.ts";
import type { Tokenizer } from "../model/tokenizer.ts";

/** What a choice needs of `TextStream`: whole characters out, stop strings held back. */
export interface TextAssembler {
  /** The text that has become certain with this token, possibly empty. */
  push(token: number): string;
  /** What was held back, at the end of the tokens. */
  finish(): string;
  /** Whether a stop string was seen; nothing comes out after it. */
  readonly stopped: boolean;
}

/** A piece of a choice, for a chunk of a stream or for the collected answer. */
export interface ChoiceDelta {
  readonly index: number;
  readonly text: string;
  /** The tokens that `text` came from. */
  readonly tokens: readonly TokenEvent[];
  /** Only the first piece of a choice has it, and only where it was asked for. */
  readonly prompt?: PromptEvent;
  /** Only the last piece of a choice has it. */
  readonly end?: ChoiceEnd;
}

export interface ChoiceEnd {
  readonly reason: "stop" | "length";
  readonly event: EndEvent;
  /** Up to the end of the text; the engine's own count runs on until a stop string is noticed. */
  readonly completionTokens: number;
  /** Nats, over these tokens. */
  readonly entropySum: number;
}

export class Choice {
  readonly index: number;
  #tokenizer: Tokenizer;
  #text: TextAssembler;
  /** Tokens whose text is still held back. */
  #held: TokenEvent[] = [];
  #prompt: PromptEvent | undefined;
  #completionTokens = 0;
  #entropySum = 0;
  /** UTF-8 bytes of the text given out, and of the tokens given out. */
  #textBytes = 0;
  #tokenBytes = 0;

  constructor(index: number, tokenizer: Tokenizer, text: TextAssembler) {
    this.index = index;
    this.#tokenizer = tokenizer;
    this.#text = text;
  }

  /** Whether a stop string ended the text, so that the sequence may be aborted. */
  get stopped(): boolean {
    return this.#text.stopped;
  }

  /**
   * Takes the sequence's next event.
   *
   * @returns The piece that became certain, or `undefined` while it is held back.
   * @throws {OverloadedError} The engine stopped the sequence before its text was complete.
   */
  take(event: SequenceEvent): ChoiceDelta | undefined {
    switch (event.type) {
      case "prompt":
        this.#prompt = event;
        return undefined;
      case "token":
        return this.#takeToken(event);
      case "end":
        return this.#takeEnd(event);
    }
  }

  #takeToken(event: TokenEvent): ChoiceDelta | undefined {
    if (this.stopped) return undefined;
    this.#completionTokens++;
    this.#entropySum += event.entropy;
    this.#held.push(event);
    const text = this.#text.push(event.token);
    return text === "" ? undefined : this.#give(text);
  }

  #takeEnd(event: EndEvent): ChoiceDelta {
    // What was held back may still complete a stop string.
    const text = this.#text.finish();
    const reason = this.stopped ? "stop" : event.reason;
    if (reason === "abort") throw new OverloadedError("Cannot finish the text: the engine stopped");
    const end = {
      reason,
      event,
      completionTokens: this.#completionTokens,
      entropySum: this.#entropySum,
    };
    return { ...this.#give(text), end };
  }

  #give(text: string): ChoiceDelta {
    this.#textBytes += utf8Length(text);
    const tokens = this.#visible(this.#held);
    this.#held = [];
    const prompt = this.#prompt;
    this.#prompt = undefined;
    return { index: this.index, text, tokens, ...(prompt && { prompt }) };
  }

  /** Leaves out the tokens of a stop string: those that begin after the visible text. */
  #visible(tokens: readonly TokenEvent[]): readonly TokenEvent[] {
    const visible = tokens.filter(({ token }) => {
      const start = this.#tokenBytes;
      this.#tokenBytes += this.#tokenizer.tokenBytes(token).length;
      return !this.stopped || start < this.#textBytes;
    });
    return visible;
  }
}

const encoder = new TextEncoder();

function utf8Length(text: string): number {
  return encoder.encode(text).length;
}
