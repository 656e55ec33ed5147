/** From what a user names as a model to its bytes, in a browser: fetched unless they are there. */
import { ModelError } from "../../errors.ts";
import type { BlobSource } from "../../model/memory_source.ts";
import { huggingFaceUrl, parseModelSpec, splitFiles, stem } from "./model_spec.ts";
import { urlOf } from "./opfs_request.ts";
import type { KeepOptions, OpfsStore } from "./opfs_store.ts";

/**
 * @param spec An https URL, a path on the page's own site, `hf:owner/repo/file.gguf` or a known name.
 * @returns What requests call the model, and all its parts.
 * @throws {TypeError} The specification is malformed.
 * @throws {ModelError} The model cannot be fetched or kept.
 */
export async function fetchToOpfs(
  spec: string,
  store: OpfsStore,
  options: KeepOptions = {},
): Promise<{ readonly id: string; readonly sources: readonly BlobSource[] }> {
  const first = locate(spec);
  const sources: BlobSource[] = [];
  for (const pathname of splitFiles(first.pathname)) {
    const url = Object.assign(new URL(first), { pathname });
    sources.push(await store.fetch(url, options));
  }
  return { id: stem(sources[0]?.name ?? spec).toLowerCase(), sources };
}

function locate(text: string): URL {
  const spec = parseModelSpec(text);
  switch (spec.kind) {
    case "url":
      return spec.url;
    case "path":
      return urlOf(spec.path);
    case "hf":
      return huggingFaceUrl(spec);
    case "known":
      return locate(spec.model.sources.find((source) => source.startsWith("hf:")) ?? "");
    case "pip":
      throw new ModelError(
        text,
        `Cannot fetch ${text}: a browser takes an https URL, hf:owner/repo/file.gguf or a known name`,
      );
  }
}
