/** A `ByteSource` over bytes in memory, and one over a browser's `Blob` or `File`. */
import { ModelError } from "../errors.ts";
import type { ByteSource } from "./source.ts";

/** Reads from an array; the array must not change meanwhile. */
export class MemorySource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly #bytes: Uint8Array;

  constructor(name: string, bytes: Uint8Array) {
    this.name = name;
    this.size = bytes.length;
    this.#bytes = bytes;
  }

  // deno-lint-ignore require-await -- a refused range must reject, not throw.
  async read(offset: number, target: Uint8Array): Promise<void> {
    checkRange(this, offset, target.length);
    target.set(this.#bytes.subarray(offset, offset + target.length));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Reads slices of a `Blob` as they are asked for; a `File` from an input element stays on disk. */
export class BlobSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  /** Its bytes; structured clone hands a blob to a Worker without copying them. */
  readonly blob: Blob;

  constructor(name: string, blob: Blob) {
    this.name = name;
    this.size = blob.size;
    this.blob = blob;
  }

  async read(offset: number, target: Uint8Array): Promise<void> {
    checkRange(this, offset, target.length);
    const slice = this.blob.slice(offset, offset + target.length);
    try {
      target.set(new Uint8Array(await slice.arrayBuffer()));
    } catch (cause) {
      throw new ModelError(this.name, `Cannot read ${this.name}: ${(cause as Error).message}`, {
        cause,
      });
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** @throws {ModelError} The range is not inside the source. */
export function checkRange(source: ByteSource, offset: number, length: number): void {
  if (!(offset >= 0 && offset + length <= source.size)) {
    throw new ModelError(
      source.name,
      `Cannot read ${source.name}: bytes ${offset} to ${offset + length} are not inside ` +
        `its ${source.size}`,
    );
  }
}
