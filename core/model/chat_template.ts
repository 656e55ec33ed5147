/**
 * Chat messages to a prompt, by the model's own Jinja template. What the template writes may become
 * control tokens; what a message says never does.
 */
import { Template } from "@huggingface/jinja";
import { RequestError } from "../errors.ts";
import { ControlGuard, type PromptSegment } from "./chat_template_guard.ts";
import { lineOfRenderError, lineOfSyntaxError } from "./chat_template_line.ts";
import type { Tokenizer } from "./tokenizer.ts";

export type { PromptSegment };

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly name?: string;
}

export interface RenderOptions {
  /** Whether the prompt ends with the beginning of the model's answer. Default false. */
  readonly addGenerationPrompt?: boolean;
}

export interface ChatTemplate {
  /** @throws {RequestError} The template refuses these messages; names the template's line. */
  render(messages: readonly ChatMessage[], options?: RenderOptions): readonly PromptSegment[];
}

/** What a template needs to know of the vocabulary. */
export interface TemplateTokens {
  /** Texts of all control tokens. */
  readonly control: readonly string[];
  /** Texts of the tokens that begin and end a text, for the template to use. */
  readonly bos?: string;
  readonly eos?: string;
  /** Whether a prompt starts with BOS even where the template does not write it. */
  readonly startsWithBos?: boolean;
}

/** A chat template in the dialect of Hugging Face's transformers. */
export class JinjaTemplate implements ChatTemplate {
  readonly #source: string;
  readonly #tokens: TemplateTokens;
  readonly #guard: ControlGuard;
  #parsed: Template | undefined;

  /** A template with errors is found out when it renders: the model can still complete texts. */
  constructor(source: string, tokens: TemplateTokens) {
    this.#source = source;
    this.#tokens = tokens;
    this.#guard = new ControlGuard(tokens.control);
  }

  render(
    messages: readonly ChatMessage[],
    { addGenerationPrompt = false }: RenderOptions = {},
  ): readonly PromptSegment[] {
    const texts = messages.flatMap((message) => Object.values(message));
    const mark = this.#guard.chooseMark([this.#source, ...texts]);
    const values = {
      messages: messages.map((message) => this.#protect(message, mark)),
      add_generation_prompt: addGenerationPrompt,
      bos_token: this.#tokens.bos ?? "",
      eos_token: this.#tokens.eos ?? "",
      // As in transformers, where templates find them without a value.
      tools: null,
      documents: null,
    };
    const segments = this.#guard.split(this.#run(values, mark), mark);
    return this.#withBos(segments);
  }

  #protect(message: ChatMessage, mark: string): Record<string, string> {
    const entries = Object.entries(message).map((
      [key, text],
    ) => [key, this.#guard.protect(text, mark)]);
    return Object.fromEntries(entries);
  }

  #run(values: Record<string, unknown>, mark: string): string {
    try {
      this.#parsed ??= new Template(this.#source);
    } catch (error) {
      throw templateError(error, lineOfSyntaxError(this.#source), mark);
    }
    try {
      return this.#parsed.render(values);
    } catch (error) {
      throw templateError(error, lineOfRenderError(this.#source, values), mark);
    }
  }

  #withBos(segments: readonly PromptSegment[]): readonly PromptSegment[] {
    const { bos, startsWithBos } = this.#tokens;
    if (!startsWithBos || bos === undefined) return segments;
    const [first] = segments;
    if (first?.control && first.text === bos) return segments;
    return [{ text: bos, control: true }, ...segments];
  }
}

function templateError(cause: unknown, line: number | undefined, mark: string): RequestError {
  const reason = cause instanceof Error ? cause.message.replaceAll(mark, "") : String(cause);
  const place = line === undefined ? "" : `, line ${line}`;
  return new RequestError(
    `Cannot render messages with the model's chat template${place}: ${reason}`,
    { param: "messages", code: "chat_template_error" },
    { cause },
  );
}

/**
 * The token ids of a rendered prompt. It needs no BOS or EOS added: the template wrote them.
 */
export function encodePrompt(
  tokenizer: Tokenizer,
  segments: readonly PromptSegment[],
): Uint32Array {
  const parts = segments.map(({ text, control }) =>
    tokenizer.encode(text, { parseSpecial: control })
  );
  const ids = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  for (const part of parts) {
    ids.set(part, end);
    end += part.length;
  }
  return ids;
}
