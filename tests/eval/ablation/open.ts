/** Opens what the ablation runs on: the model's backend, able to prune where it can, and its text. */
import type { Backend } from "../../../core/engine/backend.ts";
import { openFiles, resolveModel } from "../../../core/host/store/mod.ts";
import type { ChatTemplate } from "../../../core/model/chat_template.ts";
import { chatTemplateFromGguf } from "../../../core/model/chat_template_gguf.ts";
import { openModel } from "../../../core/model/gguf/open_model.ts";
import type { Tokenizer } from "../../../core/model/tokenizer.ts";
import { tokenizerFromGguf } from "../../../core/model/tokenizer_gguf.ts";
import { createWasmBackend } from "../../../wasm/backend.ts";
import { createTokenizer } from "../../../wasm/tokenizer.ts";
import { prepareSketch } from "./sketch.ts";

export interface Bench {
  readonly backend: Backend;
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  /** Whether the backend can prune attention. */
  readonly prunes: boolean;
}

/**
 * @param spec As `deno task model` takes it.
 * @param quick Whether little text has to do for the sketch of the keys.
 * @throws {ModelError} The model is not there.
 * @throws {TypeError} It cannot chat.
 */
export async function openBench(spec: string, kvBlocks: number, quick = false): Promise<Bench> {
  const { paths } = await resolveModel(spec);
  const sources = await openFiles(paths);
  try {
    const { files, metadata } = await openModel(sources);
    const tokenizerSpec = tokenizerFromGguf(metadata);
    const template = chatTemplateFromGguf(metadata, tokenizerSpec);
    if (template === undefined) throw new TypeError(`Cannot run ${spec}: it has no chat template`);
    const tokenizer = await createTokenizer(tokenizerSpec);
    const backend = await createWasmBackend({ files, kvBlocks });
    return { backend, tokenizer, template, prunes: await prepareSketch(backend, tokenizer, quick) };
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}
