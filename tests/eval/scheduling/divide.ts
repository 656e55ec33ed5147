/**
 * Cuts a backend's KV cache into parts, each a backend for an engine of its own. The engines' steps
 * take turns, so that whatever slows the machine down for a while slows all of them.
 */
import type { Backend, SequenceInput } from "../../../core/engine/backend.ts";

/**
 * Disposing of a part leaves the backend open, which stays its owner's.
 *
 * @param kvBlocks Of each part.
 */
export function divide(real: Backend, parts: number, kvBlocks: number): Backend[] {
  let latest = -1;
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
      forward(batch, signal) {
        latest = part;
        return real.forward(batch.map(inPlace), signal);
      },
      logits(row) {
        // An engine's step is one run of promise callbacks; another's forward would break this.
        if (latest !== part) throw new RangeError(`Cannot read row ${row}: it is overwritten`);
        return real.logits(row);
      },
      copyBlocks: (pairs) => real.copyBlocks(pairs.map(([from, to]) => [place(from), place(to)])),
      readBlocks: (blocks) => real.readBlocks(blocks.map(place)),
      writeBlocks: (blocks, content) => real.writeBlocks(blocks.map(place), content),
      dispose: () => Promise.resolve(),
    };
  });
}
