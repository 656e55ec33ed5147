/** A model under evaluation without an engine: its backend, with a sketch of its keys, and its texts. */
import type { Backend } from "../../core/engine/backend.ts";
import { calibrate } from "../../core/host/calibrate/mod.ts";
import { createBackend } from "../../core/host/open_engine.ts";
import { openFiles } from "../../core/host/store/file_source.ts";
import { resolveModel } from "../../core/host/store/mod.ts";
import type { ChatTemplate } from "../../core/model/chat_template.ts";
import { chatTemplateFromGguf } from "../../core/model/chat_template_gguf.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import type { Tokenizer } from "../../core/model/tokenizer.ts";
import { tokenizerFromGguf } from "../../core/model/tokenizer_gguf.ts";
import { createTokenizer } from "../../wasm/tokenizer.ts";

export interface Subject extends AsyncDisposable {
  readonly backend: Backend;
  readonly tokenizer: Tokenizer;
  readonly template?: ChatTemplate;
}

/**
 * @param spec As `deno task model` takes it.
 * @param kvBlocks Of 16 tokens.
 * @param quick Whether to sketch the keys from little text, as a server does at first use.
 */
export async function openSubject(
  spec: string,
  kvBlocks: number,
  quick = false,
): Promise<Subject> {
  const { paths } = await resolveModel(spec);
  const sources = await openFiles(paths);
  const { files, metadata } = await openModel(sources);
  const tokenizerSpec = tokenizerFromGguf(metadata);
  const template = chatTemplateFromGguf(metadata, tokenizerSpec);
  const backend = await createBackend(files, { backend: "wasm", kvBlocks });
  const tokenizer = await createTokenizer(tokenizerSpec);
  await Promise.all(sources.map((source) => source.close()));
  // Always anew, from the project's own text: what a file beside the model says does not count.
  await calibrate(backend, tokenizer, undefined, {
    model: "",
    lengths: [],
    quick,
    log: (line) => console.error(line),
  });
  return {
    backend,
    tokenizer,
    ...(template && { template }),
    [Symbol.asyncDispose]: () => backend.dispose(),
  };
}
