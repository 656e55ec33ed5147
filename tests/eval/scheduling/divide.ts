/** Cuts a backend's KV cache into parts, each a backend for an engine of its own. */
import type { Backend, SequenceInput } from "../../../core/engine/backend.ts";

/**
 * Disposing of a part leaves the backend open, which stays its owner's.
 *
 * @param kvBlocks Of each part.
 */
export function divide(real: Backend, parts: number, kvBlocks: number): Backend[] {
  return Array.from({ length: parts }, (_, part): Backend => {
    const place = (block: number) => part * kvBlocks + block;
    const inPlace = (input: SequenceInput) => ({
      ...input,
      blockTable: Array.from(input.blockTable, place),
    });
    return {
      config: real.config,
      limits: { ...real.limits, kvBlocks },
      describe: () => real.describe(),
      forward: (batch, signal) => real.forward(batch.map(inPlace), signal),
      logits: (row) => real.logits(row),
      logitsOf: (row, ids) => real.logitsOf(row, ids),
      draw: (row, draw) => real.draw(row, draw),
      tempered: (row, temperature) => real.tempered(row, temperature),
      copyBlocks: (pairs) => real.copyBlocks(pairs.map(([from, to]) => [place(from), place(to)])),
      readBlocks: (blocks) => real.readBlocks(blocks.map(place)),
      writeBlocks: (blocks, content) => real.writeBlocks(blocks.map(place), content),
      dispose: () => Promise.resolve(),
    };
  });
}
