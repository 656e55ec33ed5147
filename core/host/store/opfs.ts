/**
 * What the store asks of a browser's origin private file system (https://fs.spec.whatwg.org): the
 * part of `FileSystemDirectoryHandle` and its files that it uses, so that it needs no DOM types.
 */

export interface OpfsDirectory {
  getDirectoryHandle(name: string, options?: { create?: boolean }): Promise<OpfsDirectory>;
  getFileHandle(name: string, options?: { create?: boolean }): Promise<OpfsFile>;
  removeEntry(name: string): Promise<void>;
  keys(): AsyncIterable<string>;
}

export interface OpfsFile {
  getFile(): Promise<Blob>;
  /** What is written takes the place of the file, all at once, when the stream is closed. */
  createWritable(options?: { keepExistingData?: boolean }): Promise<OpfsWritable>;
}

export interface OpfsWritable extends WritableStream<Uint8Array<ArrayBuffer> | string> {
  seek(position: number): Promise<void>;
}

interface Host {
  readonly navigator?: { readonly storage?: { getDirectory?(): Promise<OpfsDirectory> } };
}

/** The root of this site's files; `undefined` where there is none, as outside of browsers. */
export async function opfsRoot(): Promise<OpfsDirectory | undefined> {
  return await (globalThis as Host).navigator?.storage?.getDirectory?.();
}
