/** Opening bad model files in tests. */
import { openModel } from "../../core/model/gguf/open_model.ts";
import { MemorySource } from "../../core/model/memory_source.ts";
import { ModelError } from "../../core/errors.ts";

/** The `ModelError` that opening these files gives; fails for any other error, and for none. */
export async function modelErrorOf(...files: readonly Uint8Array[]): Promise<ModelError> {
  const sources = files.map((bytes, i) => new MemorySource(`part-${i}.gguf`, bytes));
  try {
    await openModel(sources);
  } catch (error) {
    if (error instanceof ModelError) return error;
    throw error;
  }
  throw new Error("Expected a ModelError, the model opened");
}
