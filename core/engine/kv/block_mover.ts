/** Carries out the block moves of a step: KV out to host memory, then KV back in. */
import { BackendError } from "../../errors.ts";
import { type Backend, BLOCK_SIZE } from "../backend.ts";
import type { ScheduledStep, SwapIn } from "../scheduling/scheduled_step.ts";
import type { Sequence } from "../sequence.ts";

/**
 * Must run before the step's `forward`, which may write to the blocks that are read here.
 *
 * @param lost Told of a sequence whose KV could not be read: it has to be computed again.
 * @throws {BackendError} KV could not be written back.
 */
export async function moveBlocks(
  step: ScheduledStep,
  backend: Backend,
  lost: (sequence: Sequence) => void,
): Promise<void> {
  for (const { sequence, blocks, copy } of step.swapOuts) {
    try {
      copy.content = await backend.readBlocks(blocks);
    } catch (error) {
      if (error instanceof BackendError && error.fatal) throw error;
      lost(sequence);
    }
  }
  for (const move of step.swapIns) {
    if (move.blocks.length > 0) await backend.writeBlocks(move.blocks, contentOf(move));
  }
}

function contentOf({ sequence, blocks, skip, copy }: SwapIn): Uint8Array {
  const { content, positions } = copy;
  if (content === undefined) {
    throw new BackendError(`Cannot restore the KV of sequence ${sequence.id}: it was not saved`, {
      fatal: false,
    });
  }
  const blockBytes = content.length / Math.ceil(positions / BLOCK_SIZE);
  return content.subarray(skip * blockBytes, (skip + blocks.length) * blockBytes);
}
