/** Reads a file that lies beside the code, wherever the code came from. */
import { BackendError } from "../core/errors.ts";

/** @throws {BackendError} The file cannot be read. */
export async function readAsset(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  try {
    if (url.protocol === "file:") {
      const { readFile } = await import("node:fs/promises");
      return new Uint8Array(await readFile(url));
    }
    const response = await fetch(url);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    throw new BackendError(`Cannot read ${url}: ${String(cause)}`, { fatal: true }, { cause });
  }
}
