/**
 * Which tokens end a generation. Metadata names only some of them: a chat model's `eos_token_id` may
 * be the end of a text or of a turn. llama.cpp therefore also goes by the texts of control tokens,
 * and so does this.
 */
import type { GgufMetadata } from "./gguf/metadata.ts";

/** The value of `tokenizer.ggml.token_type` for control tokens. */
const CONTROL = 3;

/** Keys of tokens that end a text, a turn or a message. */
const END_KEYS = ["eos_token_id", "eot_token_id", "eom_token_id"];

/** Texts that chat models use for the end of a text, turn or message, or of an infilled file. */
const END_TEXTS: ReadonlySet<string> = new Set([
  "<|endoftext|>",
  "<|end_of_text|>",
  "<|im_end|>",
  "<|end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<end_of_turn>",
  "<end_of_utterance>",
  "<EOT>",
  "_<EOT>",
  "<|return|>",
  "<|call|>",
  "<|fim_pad|>",
  "<|repo_name|>",
  "<reponame>",
  "<|file_sep|>",
]);

/**
 * @returns Token ids, ascending, none repeated.
 * @throws {ModelError} A special token's id is outside the vocabulary, or `token_type` does not fit.
 */
export function readEndTokens(metadata: GgufMetadata): number[] {
  const prefix = "tokenizer.ggml.";
  const tokens = metadata.strings(`${prefix}tokens`, undefined);
  const types = metadata.ints(`${prefix}token_type`, undefined);
  const count = tokens?.length ?? 0;
  if (types !== undefined && types.length !== count) {
    throw metadata.error(
      `${prefix}token_type`,
      `must have an entry for each of the ${count} tokens, it has ${types.length}`,
    );
  }
  checkSpecialTokens(metadata, count);
  const named = END_KEYS.map((key) => metadata.uint(prefix + key, -1)).filter((id) => id >= 0);
  const ends = new Set(named);
  for (let id = 0; id < count; id++) {
    if (types?.[id] === CONTROL && END_TEXTS.has(tokens?.at(id) ?? "")) ends.add(id);
  }
  return [...ends].sort((a, b) => a - b);
}

/** Every `…_token_id` must be a token, whether or not anyone uses it. */
function checkSpecialTokens(metadata: GgufMetadata, vocabularySize: number): void {
  if (!metadata.has("tokenizer.ggml.tokens")) return;
  for (const key of metadata.keys()) {
    if (!/^tokenizer\.ggml\.\w+_token_id$/.test(key)) continue;
    const id = metadata.uint(key);
    if (id >= vocabularySize) {
      throw metadata.error(
        key,
        `must be below the vocabulary size ${vocabularySize}, current value is ${id}`,
      );
    }
  }
}
