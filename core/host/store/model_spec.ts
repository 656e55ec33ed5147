/**
 * What a user may write for a model: the alias of a known one, `hf:owner/repo[@revision]/file.gguf`,
 * `pip:package[==version]`, an https URL, or a path.
 */
import { KNOWN_MODELS, type KnownModel } from "./known_models.ts";

export type ModelSpec =
  | { readonly kind: "known"; readonly model: KnownModel }
  | { readonly kind: "url"; readonly url: URL }
  | {
    readonly kind: "hf";
    readonly repository: string;
    readonly revision: string;
    readonly file: string;
  }
  | { readonly kind: "pip"; readonly name: string; readonly version: string | undefined }
  | { readonly kind: "path"; readonly path: string };

/** A specification that has to be fetched. */
export type RemoteSpec = Exclude<ModelSpec, { kind: "path" | "known" }>;

/** Hosts from which plain http is acceptable. */
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** @throws {TypeError} It is written like a kind that it does not fit. */
export function parseModelSpec(text: string): ModelSpec {
  const model = KNOWN_MODELS.find(({ alias }) => alias === text);
  if (model !== undefined) return { kind: "known", model };
  if (text.startsWith("hf:")) return parseHuggingFace(text);
  if (text.startsWith("pip:")) return parsePip(text);
  if (/^https?:\/\//i.test(text)) return parseUrl(text);
  if (text === "") throw new TypeError(`Cannot use model "": it takes ${ALLOWED}`);
  return { kind: "path", path: text };
}

const ALLOWED = `${KNOWN_MODELS.map(({ alias }) => alias).join(", ")}, a path, an https URL, ` +
  "hf:owner/repo/file.gguf or pip:package";

function parseHuggingFace(text: string): ModelSpec {
  const name = "[A-Za-z0-9][A-Za-z0-9._-]*";
  const pattern = new RegExp(`^hf:(${name}/${name})(?:@(${name}))?/((?:${name}/)*${name}\\.gguf)$`);
  const [, repository, revision = "main", file] = text.match(pattern) ?? [];
  if (repository === undefined || file === undefined) {
    throw new TypeError(`Cannot use model "${text}": it takes hf:owner/repo[@revision]/file.gguf`);
  }
  return { kind: "hf", repository, revision, file };
}

function parsePip(text: string): ModelSpec {
  const [, name, version] = text.match(
    /^pip:([A-Za-z0-9][A-Za-z0-9._-]*)(?:==([A-Za-z0-9][A-Za-z0-9.+!_-]*))?$/,
  ) ?? [];
  if (name === undefined) {
    throw new TypeError(`Cannot use model "${text}": it takes pip:package or pip:package==version`);
  }
  return { kind: "pip", name, version };
}

function parseUrl(text: string): ModelSpec {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !url.pathname.endsWith(".gguf")) {
    throw new TypeError(`Cannot use model "${text}": it takes a URL whose path ends in .gguf`);
  }
  if (url.protocol !== "https:" && !LOOPBACK.has(url.hostname)) {
    throw new TypeError(`Cannot use model "${text}": it takes https, not http`);
  }
  return { kind: "url", url };
}

/** Where Hugging Face, or a mirror of it, has a file. */
export function huggingFaceUrl(
  { repository, revision, file }: ModelSpec & { kind: "hf" },
  endpoint = "https://huggingface.co",
): URL {
  return new URL(`${endpoint.replace(/\/+$/, "")}/${repository}/resolve/${revision}/${file}`);
}

/** Where a fetched model lies: a folder of its own below the cache folder, as path segments. */
export function cacheFolder(spec: Exclude<ModelSpec, { kind: "path" }>): readonly string[] {
  switch (spec.kind) {
    case "known":
      return [spec.model.alias];
    case "pip":
      return ["pip", spec.version === undefined ? spec.name : `${spec.name}==${spec.version}`];
    case "hf":
      return ["hf", ...`${spec.repository}@${spec.revision}/${stem(spec.file)}`.split("/")];
    case "url": {
      const { host, pathname, search } = spec.url;
      return ["url", ...`${host}${stem(pathname)}${search}`.split("/").map(plain)];
    }
  }
}

/** A segment that no file system stumbles over. */
function plain(segment: string): string {
  return segment.replaceAll(/[^A-Za-z0-9._=-]/g, "_").replace(/^\.+$/, "_");
}

/** Without `.gguf` and the part of a split model. */
export function stem(file: string): string {
  return file.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, "");
}

/** All files of the model that a file belongs to: itself, or `-00001-of-0000N` and so on. */
export function splitFiles(file: string): readonly string[] {
  const [, before, total] = file.match(/^(.*)-\d{5}-of-(\d{5})\.gguf$/) ?? [];
  if (before === undefined || total === undefined) return [file];
  return Array.from({ length: Number(total) }, (_, i) => {
    return `${before}-${String(i + 1).padStart(5, "0")}-of-${total}.gguf`;
  });
}
