/** Contract only, to be implemented: chat messages to a prompt, by the model's own Jinja template. */

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly name?: string;
}

/** A piece of a rendered prompt: a control token's text, or plain text in which none may be seen. */
export interface PromptSegment {
  readonly text: string;
  readonly control: boolean;
}

export interface ChatTemplate {
  /** @throws {RequestError} The template refuses these messages; names the template's line. */
  render(
    messages: readonly ChatMessage[],
    options?: { readonly addGenerationPrompt?: boolean },
  ): readonly PromptSegment[];
}
