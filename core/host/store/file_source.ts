/** A `ByteSource` over a file on disk. */
import { type FileHandle, open } from "node:fs/promises";
import { basename } from "node:path";
import { ModelError } from "../../errors.ts";
import { checkRange } from "../../model/memory_source.ts";
import type { ByteSource } from "../../model/source.ts";

/** Reads positions of an open file; several reads may be under way at once. */
export class FileSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly #file: FileHandle;

  private constructor(name: string, size: number, file: FileHandle) {
    this.name = name;
    this.size = size;
    this.#file = file;
  }

  /** @throws {ModelError} The file does not exist, is no regular file, or may not be read. */
  static async open(path: string): Promise<FileSource> {
    try {
      const file = await open(path, "r");
      const status = await file.stat();
      if (status.isFile()) return new FileSource(basename(path), status.size, file);
      await file.close();
    } catch (cause) {
      throw new ModelError(path, `Cannot open ${path}: ${(cause as Error).message}`, { cause });
    }
    throw new ModelError(path, `Cannot open ${path}: it is no regular file`);
  }

  async read(offset: number, target: Uint8Array): Promise<void> {
    checkRange(this, offset, target.length);
    let done = 0;
    while (done < target.length) {
      const bytesRead = await this.#readSome(offset + done, target.subarray(done));
      if (bytesRead === 0) {
        throw new ModelError(
          this.name,
          `Cannot read ${this.name}: it ends at byte ${offset + done}, it was ${this.size} long`,
        );
      }
      done += bytesRead;
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #readSome(offset: number, target: Uint8Array): Promise<number> {
    try {
      return (await this.#file.read(target, 0, target.length, offset)).bytesRead;
    } catch (cause) {
      throw new ModelError(this.name, `Cannot read ${this.name}: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
}

/** Opens all files of a model; none stays open where one fails. */
export async function openFiles(paths: readonly string[]): Promise<FileSource[]> {
  const sources: FileSource[] = [];
  try {
    for (const path of paths) sources.push(await FileSource.open(path));
    return sources;
  } catch (error) {
    await Promise.all(sources.map((source) => source.close()));
    throw error;
  }
}
