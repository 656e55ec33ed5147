/**
 * A file being written from front to back, hashed as it grows. Beside it stands what a later process
 * needs in order to go on: where the bytes came from, and which version of it.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Which bytes the file has the beginning of. */
export interface Origin {
  readonly url: string;
  /** A strong ETag or a date, for `If-Range`. */
  readonly validator: string;
}

export class PartialFile {
  #size = 0;
  #origin: Origin | undefined;
  #hash: Hash = createHash("sha256");
  #file: FileHandle | undefined;
  readonly #path: string;
  readonly #originPath: string;

  private constructor(folder: string) {
    this.#path = join(folder, "data");
    this.#originPath = join(folder, "origin.json");
  }

  /** Goes on with the file that lies in a folder, if there is one. */
  static async open(folder: string): Promise<PartialFile> {
    await mkdir(folder, { recursive: true });
    const part = new PartialFile(folder);
    const origin = await readOrigin(part.#originPath);
    if (origin === undefined) {
      await part.restart();
      return part;
    }
    part.#file = await open(part.#path, "a");
    for await (const chunk of createReadStream(part.#path)) {
      part.#hash.update(chunk);
      part.#size += chunk.length;
    }
    part.#origin = origin;
    return part;
  }

  /** Bytes written so far. */
  get size(): number {
    return this.#size;
  }

  /** Where the bytes come from; `undefined` where they cannot be continued. */
  get origin(): Origin | undefined {
    return this.#origin;
  }

  /** Drops every byte. */
  async restart(origin?: Origin): Promise<void> {
    await this.#file?.close();
    // First the origin, so that bytes never stand beside an origin that is not theirs.
    await rm(this.#originPath, { force: true });
    this.#file = await open(this.#path, "w");
    this.#origin = origin;
    this.#size = 0;
    this.#hash = createHash("sha256");
    if (origin !== undefined) await writeFile(this.#originPath, JSON.stringify(origin));
  }

  async append(chunk: Uint8Array): Promise<void> {
    await this.#file?.appendFile(chunk);
    this.#hash.update(chunk);
    this.#size += chunk.length;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /**
   * Puts the finished file in its place, where its content is the one expected.
   *
   * @throws {Error} The content is another; it is dropped, as going on with it would be in vain.
   */
  async finish(target: string, sha256?: string): Promise<void> {
    const actual = this.#hash.copy().digest("hex");
    if (sha256 !== undefined && actual !== sha256) {
      await this.restart();
      throw new Error(`sha256 is ${actual}, expected ${sha256}`);
    }
    await this.close();
    await mkdir(dirname(target), { recursive: true });
    await rename(this.#path, target);
    await rm(this.#originPath, { force: true });
  }
}

async function readOrigin(path: string): Promise<Origin | undefined> {
  try {
    const { url, validator } = JSON.parse(await readFile(path, "utf8"));
    return typeof url === "string" && typeof validator === "string"
      ? { url, validator }
      : undefined;
  } catch {
    return undefined;
  }
}
