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
  const bos = spec.tokens.at(bosId);
  const eos = spec.tokens.at(metadata.uint("tokenizer.ggml.eos_token_id", -1));
  const control: string[] = [];
  spec.types.forEach((type, id) => {
    if (type === TOKEN_TYPES.control) control.push(spec.tokens.at(id) ?? "");
  });
  return new JinjaTemplate(source, {
    control,
    startsWithBos: spec.before.includes(bosId),
    ...(bos !== undefined && { bos }),
    ...(eos !== undefined && { eos }),
  });
}
