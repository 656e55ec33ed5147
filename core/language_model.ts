/** A model ready to talk: a token engine with the tokenizer and chat template that fit it. */
import type { Engine } from "./engine/engine.ts";
import type { ChatTemplate } from "./model/chat_template.ts";
import type { Tokenizer } from "./model/tokenizer.ts";

export interface LanguageModel {
  /** The name that requests use, for example `smollm2-135m-instruct`. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  /** Missing where the model's file has none: chat requests are then refused. */
  readonly template?: ChatTemplate;
}
