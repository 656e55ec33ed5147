/** What a scripted backend refuses: a batch beyond its limits, and one that writes where another reads. */
import { type BackendLimits, BLOCK_SIZE, type SequenceInput } from "../../core/engine/backend.ts";

/** @throws {RangeError} What the file says. */
export function checkScriptedBatch(
  batch: readonly SequenceInput[],
  limits: BackendLimits,
  prunes: boolean,
): void {
  const { maxBatchTokens, maxOutputRows, contextLength, kvBlocks } = limits;
  const writers = new Map<number, SequenceInput>();
  let tokens = 0, rows = 0;
  for (const input of batch) {
    const count = input.tokens.length, end = input.position + count;
    tokens += count;
    rows += input.output === "none" ? 0 : input.output === "last" ? 1 : count;
    if (count === 0) throw new RangeError("Cannot run a sequence without new tokens");
    if (input.attention.kind !== "dense" && !prunes) {
      throw new RangeError(`Cannot attend by ${input.attention.kind}: there is no sketch`);
    }
    if (end > contextLength) throw new RangeError(`Cannot run position ${end - 1}`);
    if (end > input.blockTable.length * BLOCK_SIZE) throw new RangeError("Block table too short");
    for (let i = Math.floor(input.position / BLOCK_SIZE); i * BLOCK_SIZE < end; i++) {
      const block = input.blockTable[i] as number;
      if (writers.has(block)) throw new RangeError(`Two sequences write block ${block}`);
      writers.set(block, input);
    }
  }
  for (const input of batch) {
    for (let i = 0; i < input.blockTable.length; i++) {
      const block = input.blockTable[i] as number;
      if (!(block >= 0 && block < kvBlocks)) throw new RangeError(`There is no block ${block}`);
      if ((writers.get(block) ?? input) !== input) {
        throw new RangeError(`Block ${block} is written while another sequence reads it`);
      }
    }
  }
  if (tokens > maxBatchTokens) throw new RangeError(`Cannot run ${tokens} tokens at once`);
  if (rows > maxOutputRows) throw new RangeError(`Cannot output ${rows} rows at once`);
}
