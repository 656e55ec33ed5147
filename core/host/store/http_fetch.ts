/** Fetches a model, all parts of it, from a URL or from Hugging Face. */
import { join } from "node:path";
import type { Environment } from "./cache_directory.ts";
import type { FetchContext } from "./fetch_context.ts";
import { download } from "./http_download.ts";
import type { RemoteSpec } from "./model_spec.ts";
import { huggingFaceUrl, splitFiles } from "./model_spec.ts";
import { PartialFile } from "./partial_file.ts";
import { TransferMeter } from "./transfer_meter.ts";

type HttpSpec = Extract<RemoteSpec, { kind: "url" | "hf" }>;

/** @throws {Error} Says what went wrong; without the URL, which the caller knows. */
export async function fetchHttp(spec: HttpSpec, context: FetchContext): Promise<void> {
  const first = spec.kind === "url"
    ? spec.url
    : huggingFaceUrl(spec, context.environment["HF_ENDPOINT"] || undefined);
  const headers = spec.kind === "hf" ? huggingFaceHeaders(context.environment) : {};
  for (const pathname of splitFiles(first.pathname)) {
    const url = new URL(first);
    url.pathname = pathname;
    await fetchFile(url, headers, context);
  }
}

async function fetchFile(
  url: URL,
  headers: Record<string, string>,
  { staging, sha256, signal, onProgress, log }: FetchContext,
): Promise<void> {
  const name = decodeURIComponent(url.pathname.split("/").at(-1) ?? "");
  const part = await PartialFile.open(join(staging.path, `${name}.part`));
  try {
    if (part.size > 0) log(`Going on with ${name} after ${part.size} bytes`);
    const meter = new TransferMeter(name, onProgress);
    await download({ url, headers, signal }, part, meter);
    await part.finish(join(staging.files, name), sha256);
  } finally {
    await part.close();
  }
}

/** https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables */
function huggingFaceHeaders(environment: Environment): Record<string, string> {
  const token = environment["HF_TOKEN"];
  return token ? { authorization: `Bearer ${token}` } : {};
}
