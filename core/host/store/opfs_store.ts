/**
 * Models that a browser keeps for a site, in its origin private file system. Beside each file stands
 * a record that says how long it has to be: one that is shorter is the beginning of a download, which
 * goes on there, and never taken for a model.
 */
import { ModelError } from "../../errors.ts";
import { BlobSource } from "../../model/memory_source.ts";
import { type OpfsDirectory, opfsRoot } from "./opfs.ts";
import { continues, lengthOf, request, urlOf, validatorOf } from "./opfs_request.ts";
import { type ReportProgress, TransferMeter } from "./transfer_meter.ts";

export interface StoredModel {
  readonly name: string;
  /** Bytes that are there. */
  readonly bytes: number;
  /** Bytes of the whole model; `undefined` where a server did not say and broke off. */
  readonly size: number | undefined;
  readonly complete: boolean;
  /** Where it came from, if not from a file. */
  readonly url: string | undefined;
}

export interface OpfsOptions {
  /** Where the models lie; a folder in the site's private files where left out. */
  readonly directory?: OpfsDirectory;
  readonly fetch?: typeof fetch;
}

export interface KeepOptions {
  /** Told how far the transfer is. */
  readonly onProgress?: ReportProgress;
  readonly signal?: AbortSignal;
}

/** What is written beside a model. */
interface ModelRecord {
  readonly size?: number | undefined;
  readonly url?: string;
  /** Tells versions of the URL's content apart. */
  readonly validator?: string | undefined;
}

const FOLDER = "entropic-time";
const RECORD = ".json";

/** Milliseconds, doubled from 1 on, between attempts to remove a file that is in use. */
const LONGEST_WAIT = 1000;

/**
 * A site's models.
 *
 * @example
 * ```ts
 * const store = await OpfsStore.open();
 * const source = await store.fetch("https://example.com/model.gguf");
 * const model = await loadModel({ model: [source], worker: true });
 * ```
 */
export class OpfsStore {
  readonly #directory: OpfsDirectory;
  readonly #fetch: typeof fetch;

  private constructor(directory: OpfsDirectory, fetcher: typeof fetch) {
    this.#directory = directory;
    this.#fetch = fetcher;
  }

  /** @throws {ModelError} This is no browser, or the page is not in a secure context. */
  static async open(options: OpfsOptions = {}): Promise<OpfsStore> {
    const root = options.directory ?? await opfsRoot();
    if (root === undefined) {
      throw new ModelError(
        "storage",
        "Cannot keep models: there is no origin private file system; it takes a browser and https",
      );
    }
    const folder = await root.getDirectoryHandle(FOLDER, { create: true });
    return new OpfsStore(folder, options.fetch ?? fetch.bind(globalThis));
  }

  /** Whole models and unfinished ones, by name. */
  async list(): Promise<StoredModel[]> {
    const names: string[] = [];
    for await (const key of this.#directory.keys()) {
      if (key.endsWith(RECORD)) names.push(key.slice(0, -RECORD.length));
    }
    return await Promise.all(
      names.sort().map(async (name) => {
        const { size, url, validator: _ } = await this.#record(name);
        const bytes = (await this.#blob(name))?.size ?? 0;
        return { name, bytes, size, complete: bytes === size, url };
      }),
    );
  }

  /** @throws {ModelError} There is no whole model of this name. */
  async open(name: string): Promise<BlobSource> {
    const blob = await this.#blob(name);
    if (blob !== undefined && blob.size === (await this.#record(name)).size) {
      return new BlobSource(name, blob);
    }
    const state = blob === undefined ? "there is none of this name" : "it is not whole";
    throw new ModelError(name, `Cannot open the model ${name}: ${state}`);
  }

  /**
   * The model of a URL, fetched unless it is there. Goes on with what an earlier attempt left, where
   * the server shows that the file is still the same. A model of the same file name gives way.
   *
   * @throws {ModelError} It cannot be fetched, is no GGUF file, or there is no room for it.
   */
  async fetch(address: string | URL, options: KeepOptions = {}): Promise<BlobSource> {
    const url = urlOf(address);
    const name = fileName(url);
    const record = await this.#record(name);
    const bytes = (await this.#blob(name))?.size ?? 0;
    if (record.url === url.href && bytes > 0) {
      if (bytes === record.size) return await this.open(name);
      const rest = await request(this.#fetch, url, bytes, options.signal);
      if (continues(rest, { ...record, bytes })) {
        return await this.#fill(name, record, bytes, rest, options);
      }
      await rest.body?.cancel();
    }
    const whole = await request(this.#fetch, url, 0, options.signal);
    const fresh = { size: lengthOf(whole), url: url.href, validator: validatorOf(whole) };
    await this.#begin(name, fresh);
    return await this.#fill(name, fresh, 0, whole, options);
  }

  /**
   * Keeps a copy of a file that the user picked.
   *
   * @throws {ModelError} It is no GGUF file, or there is no room for it.
   */
  async add(file: File, options: KeepOptions = {}): Promise<BlobSource> {
    const record = { size: file.size };
    await this.#begin(file.name, record);
    return await this.#fill(file.name, record, 0, new Response(file), options);
  }

  /** Deletes a model, whole or not, if there is one of this name. */
  async delete(name: string): Promise<void> {
    // The file first: a record without a file is an unfinished model, a file alone is nothing.
    await this.#remove(name);
    await this.#remove(name + RECORD);
  }

  /** Drops what has this name, so that old bytes never stand beside the new record. */
  async #begin(name: string, record: ModelRecord): Promise<void> {
    await this.#remove(name);
    await this.#write(name, record);
  }

  /** Writes the bytes from `from` on. What came before a failure stays, if it can be continued. */
  async #fill(
    name: string,
    record: ModelRecord,
    from: number,
    { body }: Response,
    { onProgress = () => {}, signal }: KeepOptions,
  ): Promise<BlobSource> {
    const meter = new TransferMeter(name, onProgress);
    meter.start(from, record.size);
    let bytes = from;
    const watch = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        if (bytes === 0) checkMagic(name, chunk);
        meter.moveTo(bytes += chunk.length);
        controller.enqueue(chunk);
      },
    });
    const file = await this.#directory.getFileHandle(name, { create: true });
    const writable = await file.createWritable({ keepExistingData: from > 0 });
    try {
      await writable.seek(from);
      const pipe = { preventAbort: true, preventClose: true, ...(signal && { signal }) };
      await body?.pipeThrough(watch).pipeTo(writable, pipe);
      await writable.close();
      if (bytes !== (record.size ?? bytes)) {
        throw new Error(`it ended after ${bytes} of ${record.size} bytes`);
      }
      if (record.size === undefined) await this.#write(name, { ...record, size: bytes });
    } catch (error) {
      const keep = record.validator !== undefined && !(error instanceof ModelError);
      // Both fail where it is closed already, or the disk is full: then nothing is there to keep.
      await (keep ? writable.close() : writable.abort()).catch(() => {});
      if (!keep) await this.delete(name);
      signal?.throwIfAborted();
      throw transferError(name, error);
    }
    meter.done();
    return await this.open(name);
  }

  async #blob(name: string): Promise<Blob | undefined> {
    try {
      return await (await this.#directory.getFileHandle(name)).getFile();
    } catch (error) {
      return ignoreMissing(error);
    }
  }

  async #record(name: string): Promise<ModelRecord> {
    const text = await (await this.#blob(name + RECORD))?.text();
    return text ? JSON.parse(text) as ModelRecord : {};
  }

  async #write(name: string, record: ModelRecord): Promise<void> {
    const file = await this.#directory.getFileHandle(name + RECORD, { create: true });
    const writer = (await file.createWritable()).getWriter();
    await writer.write(JSON.stringify(record));
    await writer.close();
  }

  /** A browser lets go of a file a moment after what wrote it was closed. */
  async #remove(name: string): Promise<void> {
    for (let wait = 1; wait < LONGEST_WAIT; wait *= 2) {
      try {
        return await this.#directory.removeEntry(name);
      } catch (error) {
        if ((error as Error).name !== "NoModificationAllowedError") return ignoreMissing(error);
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
    throw new ModelError(name, `Cannot replace ${name}: another page is writing it`);
  }
}

function ignoreMissing(error: unknown): undefined {
  if ((error as Error).name !== "NotFoundError") throw error;
}

function fileName(url: URL): string {
  const name = decodeURIComponent(url.pathname.split("/").at(-1) ?? "");
  if (name !== "") return name;
  throw new ModelError(url.href, `Cannot fetch ${url}: its path names no file`);
}

/** A login page in the guise of a file should be noticed before it has been read to its end. */
function checkMagic(name: string, start: Uint8Array): void {
  const magic = new TextDecoder().decode(start.subarray(0, 4));
  if (magic === "GGUF") return;
  throw new ModelError(
    name,
    `Cannot use ${name}: it is no GGUF file, it starts with ${JSON.stringify(magic)}`,
  );
}

function transferError(name: string, cause: unknown): ModelError {
  if (cause instanceof ModelError) return cause;
  const { name: kind, message } = cause as Error;
  const reason = kind === "QuotaExceededError" ? "the browser has no room for it" : message;
  return new ModelError(name, `Cannot keep ${name}: ${reason}`, { cause });
}
