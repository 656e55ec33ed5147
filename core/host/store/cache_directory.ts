/** The folder that keeps fetched models. */
import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import process from "node:process";

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** @param given What the user named, which goes before every setting of the environment. */
export function cacheDirectory(
  given?: string,
  environment: Environment = process.env,
): string {
  const named = given || environment["ENTROPIC_MODEL_DIR"];
  if (named) return resolve(named);
  const caches = environment["XDG_CACHE_HOME"] || environment["LOCALAPPDATA"] ||
    join(homedir(), ".cache");
  return join(caches, "entropic-time");
}

export interface CachedFile {
  readonly path: string;
  /** Below the cache folder, with `/` between folders. */
  readonly name: string;
  readonly size: number;
}

/** Every model file in the cache, by name. Downloads under way are not among them. */
export async function cachedFiles(directory: string): Promise<CachedFile[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    .catch(() => []);
  const files = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".gguf"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !relative(directory, path).startsWith("."));
  const found = await Promise.all(files.map(async (path) => ({
    path,
    name: relative(directory, path).replaceAll(sep, "/"),
    size: (await stat(path)).size,
  })));
  return found.sort((a, b) => a.name < b.name ? -1 : 1);
}
