/** From the files of a model to checked configuration, metadata and tensor places. */
import { ModelError } from "../../errors.ts";
import { checkArchitecture, readModelConfig } from "../config_reader.ts";
import type { ByteSource } from "../source.ts";
import type { ModelFiles, TensorInfo } from "../tensors.ts";
import { headerError, readHeader } from "./header.ts";
import { GgufMetadata } from "./metadata.ts";
import { orderParts } from "./split.ts";
import { placeTensors } from "./tensor_table.ts";

export interface OpenedModel {
  readonly files: ModelFiles;
  /** Of the first file, where a model is split: it has all that matters. */
  readonly metadata: GgufMetadata;
}

/**
 * Reads headers and tensor tables; never the weights. The sources stay open, and the caller's to
 * close, whether this succeeds or not.
 *
 * @param sources The file of the model, or all its parts in any order.
 * @throws {ModelError} A file is malformed, or a model that the project cannot run.
 */
export async function openModel(sources: readonly ByteSource[]): Promise<OpenedModel> {
  const parts = [];
  for (const source of sources) parts.push({ source, header: await readHeader(source) });
  const ordered = orderParts(parts);
  const [first] = ordered;
  if (first === undefined) {
    throw new ModelError("files", "Cannot open a model: no file was given");
  }
  const metadata = new GgufMetadata(first.source.name, first.header.metadata);
  // Before the tensors: of an unsupported architecture, that is what the user should hear.
  checkArchitecture(metadata);
  const tensors = new Map<string, TensorInfo>();
  ordered.forEach(({ source, header }, index) => {
    for (const tensor of placeTensors(source, index, header)) {
      if (tensors.has(tensor.name)) {
        throw headerError(source, tensor.name, "is also in another file of the model");
      }
      tensors.set(tensor.name, tensor);
    }
  });
  const config = readModelConfig(metadata, tensors);
  return { files: { config, tensors, sources: ordered.map(({ source }) => source) }, metadata };
}
