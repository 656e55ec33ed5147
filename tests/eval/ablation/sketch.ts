/** Lets a backend prune where it can: with a sketch of its keys from the project's own text. */
import type { Backend } from "../../../core/engine/backend.ts";
import { calibrate } from "../../../core/host/calibrate/mod.ts";
import type { Tokenizer } from "../../../core/model/tokenizer.ts";

/**
 * Voids the backend's KV.
 *
 * @param quick From little text, as a server makes it at first use.
 * @returns Whether it can prune now.
 */
export async function prepareSketch(
  backend: Backend,
  tokenizer: Tokenizer,
  quick: boolean,
): Promise<boolean> {
  if (backend.pruning === undefined) return false;
  // No lengths: the share of the attention to keep is given, not chosen.
  await calibrate(backend, tokenizer, undefined, { model: "", lengths: [], quick });
  return backend.describe().prunes === true;
}
