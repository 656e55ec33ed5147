/** A tokenizer that needs no vocabulary, and a chat template in its control tokens. */
import type { ChatTemplate } from "../../core/model/chat_template.ts";
import type { EncodeOptions, Tokenizer } from "../../core/model/tokenizer.ts";

/** Ids 0 to 255 are bytes; these follow. */
export const CONTROL = ["<|bos|>", "<|im_start|>", "<|im_end|>", "<|end|>"] as const;
export const BOS = 256;
export const END = 258;
export const VOCABULARY = 260;

const encoder = new TextEncoder();

/** A token a byte; control tokens only on demand; BOS is what the model wants around a text. */
export class ByteTokenizer implements Tokenizer {
  readonly vocabularySize = VOCABULARY;
  readonly longestToken = Math.max(...CONTROL.map((text) => text.length));

  encode(text: string, options: EncodeOptions = {}): Uint32Array {
    const pieces = options.parseSpecial
      ? text.split(/(<\|(?:bos|im_start|im_end|end)\|>)/)
      : [text];
    const tokens = pieces.flatMap((piece) => {
      const control = CONTROL.indexOf(piece as typeof CONTROL[number]);
      return options.parseSpecial && control >= 0 ? [256 + control] : [...encoder.encode(piece)];
    });
    return Uint32Array.from(options.addSpecial ? [BOS, ...tokens] : tokens);
  }

  decode(tokens: ArrayLike<number>, options: { readonly special?: boolean } = {}): string {
    const bytes = Array.from(tokens).flatMap((token) =>
      token < 256 ? [token] : options.special ? [...encoder.encode(this.tokenText(token))] : []
    );
    return new TextDecoder().decode(Uint8Array.from(bytes));
  }

  tokenBytes(token: number): Uint8Array {
    return Uint8Array.from(token < 256 ? [token] : []);
  }

  tokenText(token: number): string {
    return CONTROL[token - 256] ?? new TextDecoder().decode(this.tokenBytes(token));
  }

  isControl(token: number): boolean {
    return token >= 256;
  }
}

/** ChatML in the fake's control tokens. */
export const chatml: ChatTemplate = {
  render(messages, options = {}) {
    const segments = messages.flatMap(({ role, content }) => [
      { text: "<|im_start|>", control: true },
      { text: `${role}\n${content}`, control: false },
      { text: "<|im_end|>", control: true },
      { text: "\n", control: false },
    ]);
    if (!options.addGenerationPrompt) return segments;
    return [
      ...segments,
      { text: "<|im_start|>", control: true },
      { text: "assistant\n", control: false },
    ];
  },
};
