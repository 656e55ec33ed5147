/** The chat template of a GGUF file, with what it needs of the file's vocabulary. */
import { JinjaTemplate } from "./chat_template.ts";
import type { GgufMetadata } from "./gguf/metadata.ts";
import { TOKEN_TYPES, type TokenizerSpec } from "./tokenizer_spec.ts";

/**
 * @param spec The tokenizer of the same file.
 * @returns `undefined` where the file has no template.
 */
export function chatTemplateFromGguf(
  metadata: GgufMetadata,
  spec: Pick<TokenizerSpec, "tokens" | "types" | "before">,
): JinjaTemplate | undefined {
  const source = metadata.string("tokenizer.chat_template", undefined);
  if (source === undefined) return undefined;
  const bosId = metadata.uint("tokenizer.ggml.bos_token_id", -1);
  const bos = spec.tokens[bosId];
  const eos = spec.tokens[metadata.uint("tokenizer.ggml.eos_token_id", -1)];
  return new JinjaTemplate(source, {
    control: spec.tokens.filter((_, id) => spec.types[id] === TOKEN_TYPES.control),
    startsWithBos: spec.before.includes(bosId),
    ...(bos !== undefined && { bos }),
    ...(eos !== undefined && { eos }),
  });
}
