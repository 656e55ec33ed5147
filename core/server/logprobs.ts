/** Log-probabilities in the shapes of chat and of text completions. */
import type { TokenEvent, TokenLogprob } from "../engine/engine.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import type { ChatLogprobs } from "./schemas/chat.ts";
import type { CompletionLogprobs } from "./schemas/completions.ts";

/** OpenAI's stand-in for minus infinity, which JSON cannot say. */
const LOWEST = -9999;

/**
 * A token as a string that no other token shares: its text or, where its bytes are no whole
 * characters, OpenAI's `bytes:\xe2\x82`.
 */
export function tokenString(tokenizer: Tokenizer, token: number): string {
  if (tokenizer.isControl(token)) return tokenizer.tokenText(token);
  const bytes = tokenizer.tokenBytes(token);
  try {
    return decoder.decode(bytes);
  } catch {
    return "bytes:" +
      Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function chatLogprobs(tokenizer: Tokenizer, events: readonly TokenEvent[]): ChatLogprobs {
  const entry = ({ token, logprob }: TokenLogprob) => ({
    token: tokenString(tokenizer, token),
    logprob: finite(logprob),
    bytes: [...tokenizer.tokenBytes(token)],
  });
  return {
    content: events.map((event) => ({ ...entry(event), top_logprobs: event.top.map(entry) })),
  };
}

/** A token of the echoed prompt or of the completion; the prompt's first has no probability. */
export interface ScoredToken {
  readonly token: number;
  readonly logprob: number | null;
  readonly top: readonly TokenLogprob[];
}

/** Keeps count of characters over the chunks of one choice, for `text_offset`. */
export class CompletionScores {
  #tokenizer: Tokenizer;
  /** Unicode characters that began so far. */
  #offset = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  take(tokens: readonly ScoredToken[]): CompletionLogprobs {
    const name = (token: number) => tokenString(this.#tokenizer, token);
    return {
      tokens: tokens.map(({ token }) => name(token)),
      token_logprobs: tokens.map(({ logprob }) => logprob === null ? null : finite(logprob)),
      top_logprobs: tokens.map(({ logprob, top }) =>
        logprob === null
          ? null
          : Object.fromEntries(top.map((entry) => [name(entry.token), finite(entry.logprob)]))
      ),
      text_offset: tokens.map(({ token }) => {
        const offset = this.#offset;
        this.#offset += charactersBegun(this.#tokenizer.tokenBytes(token));
        return offset;
      }),
    };
  }
}

/** Counts the bytes that are no UTF-8 continuation bytes. */
function charactersBegun(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => count + ((byte & 0xc0) === 0x80 ? 0 : 1), 0);
}

function finite(logprob: number): number {
  return Math.max(logprob, LOWEST);
}
