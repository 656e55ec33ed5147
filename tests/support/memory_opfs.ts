/** An origin private file system in memory, for runtimes that have none. */
import type { OpfsDirectory, OpfsFile, OpfsWritable } from "../../core/host/store/opfs.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export class MemoryOpfs implements OpfsDirectory {
  readonly #folders = new Map<string, MemoryOpfs>();
  readonly #files = new Map<string, Bytes>();
  /** How many removals are refused before one is granted. */
  refusals = 0;

  getDirectoryHandle(name: string): Promise<MemoryOpfs> {
    const folder = this.#folders.get(name) ?? new MemoryOpfs();
    this.#folders.set(name, folder);
    return Promise.resolve(folder);
  }

  getFileHandle(name: string, { create = false } = {}): Promise<OpfsFile> {
    if (create && !this.#files.has(name)) this.#files.set(name, new Uint8Array());
    if (!this.#files.has(name)) return Promise.reject(notFound());
    return Promise.resolve({
      getFile: () => Promise.resolve(new Blob([this.#files.get(name) ?? new Uint8Array()])),
      createWritable: ({ keepExistingData = false } = {}) => {
        const kept = keepExistingData ? this.#files.get(name) : undefined;
        return Promise.resolve(swapFile(kept, (bytes) => this.#files.set(name, bytes)));
      },
    });
  }

  removeEntry(name: string): Promise<void> {
    if (this.refusals-- > 0) {
      return Promise.reject(new DOMException("It is in use", "NoModificationAllowedError"));
    }
    return this.#files.delete(name) ? Promise.resolve() : Promise.reject(notFound());
  }

  async *keys(): AsyncGenerator<string> {
    yield* this.#files.keys();
  }
}

const notFound = () => new DOMException("A requested file could not be found", "NotFoundError");

/** Collects what is written, and hands it over when it is closed. */
function swapFile(kept: Bytes | undefined, close: (bytes: Bytes) => void): OpfsWritable {
  let bytes = [...kept ?? []];
  let position = 0;
  const stream = new WritableStream<Bytes | string>({
    write(chunk) {
      const written = typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
      bytes = [...bytes.slice(0, position), ...written, ...bytes.slice(position + written.length)];
      position += written.length;
    },
    close: () => close(Uint8Array.from(bytes)),
  });
  const seek = (to: number) => {
    position = to;
    return Promise.resolve();
  };
  return Object.assign(stream, { seek });
}
