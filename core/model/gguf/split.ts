/**
 * Models split over several files (`-00001-of-0000N.gguf`). Each file carries `split.no`,
 * `split.count` and `split.tensors.count`; the first one also carries the model's metadata.
 */
import type { ByteSource } from "../source.ts";
import { type GgufHeader, headerError } from "./header.ts";
import { GgufMetadata } from "./metadata.ts";

/** One file of a model with its header. */
export interface ModelPart {
  readonly source: ByteSource;
  readonly header: GgufHeader;
}

/**
 * Brings parts into their order, and refuses a set that is not whole.
 *
 * @throws {ModelError} A part is missing, given twice, or belongs to another model.
 */
export function orderParts(parts: readonly ModelPart[]): readonly ModelPart[] {
  const count = parts.length;
  const ordered = new Array<ModelPart | undefined>(count).fill(undefined);
  for (const part of parts) {
    const metadata = new GgufMetadata(part.source.name, part.header.metadata);
    const claimed = metadata.uint("split.count", 1);
    // Some writers put the keys into unsplit files, with a count of 0 or 1.
    if (Math.max(claimed, 1) !== count) {
      throw headerError(
        part.source,
        "split.count",
        `says that the model has ${claimed} files, ${count} were given`,
      );
    }
    const number = metadata.uint("split.no", 0);
    if (number >= count) {
      throw headerError(part.source, "split.no", `is ${number}, but split.count is ${count}`);
    }
    const twin = ordered[number];
    if (twin !== undefined) {
      throw headerError(
        part.source,
        "split.no",
        `is ${number}, and so is that of ${twin.source.name}`,
      );
    }
    ordered[number] = part;
  }
  const whole = ordered.filter((part) => part !== undefined);
  checkTensorCount(whole);
  return whole;
}

/** `split.tensors.count` counts the tensors of all files together. */
function checkTensorCount(parts: readonly ModelPart[]): void {
  const total = parts.reduce((sum, { header }) => sum + header.tensors.length, 0);
  for (const { source, header } of parts) {
    const metadata = new GgufMetadata(source.name, header.metadata);
    const claimed = metadata.uint("split.tensors.count", total);
    if (claimed !== total) {
      throw headerError(
        source,
        "split.tensors.count",
        `says that the model has ${claimed} tensors, its files have ${total}`,
      );
    }
  }
}
