/** What the attention of a step read and multiplied, from the counters of a backend. */
import {
  type AttentionPlan,
  type AttentionStats,
  BLOCK_SIZE,
  type SequenceInput,
} from "./backend.ts";
import type { ModelConfig } from "../model/config.ts";
import { outputRows } from "./backend_checks.ts";

/** Bytes of a KV block in one layer and KV head, and what a scan of it reads and takes. */
export interface BlockCost {
  /** Keys and values with their scales. */
  readonly recordBytes: number;
  /** Bytes of its codes, and dimensions of a code; 0 without a sketch. */
  readonly codeBytes: number;
  readonly dimensions: number;
}

/** What a backend counted for a sequence: blocks, and the share left out, over layers and KV heads. */
export interface AttentionCount {
  readonly blocks: number;
  readonly dropped: number;
}

/**
 * The figures of one sequence's part of a step.
 *
 * @param count Missing where nothing was left out.
 */
export function attentionStats(
  { heads, headSize, kvHeads, layers }: ModelConfig,
  sequence: SequenceInput,
  count: AttentionCount | undefined,
  { recordBytes, codeBytes, dimensions }: BlockCost,
): AttentionStats {
  let units = 0; // pairs of a token and a KV head, over layers
  let blocksTotal = 0, positionsTotal = 0;
  let scannedUnits = 0, scannedBlocks = 0, scannedPositions = 0;
  const end = sequence.position + sequence.tokens.length;
  for (let context = sequence.position + 1; context <= end; context++) {
    // The last layer attends for output rows only.
    const attends = kvHeads * (end - context < outputRows(sequence) ? layers : layers - 1);
    const blocks = Math.ceil(context / BLOCK_SIZE);
    units += attends;
    blocksTotal += attends * blocks;
    positionsTotal += attends * context;
    if (!isScanned(sequence.attention, blocks)) continue;
    scannedUnits += attends;
    scannedBlocks += attends * blocks;
    scannedPositions += attends * context;
  }
  const group = heads / kvHeads;
  const { blocks: blocksRead, dropped } = count ?? { blocks: blocksTotal, dropped: 0 };
  // Only a context's last block is not full, and it is always read.
  const positionsRead = positionsTotal - BLOCK_SIZE * (blocksTotal - blocksRead);
  return {
    blocksRead,
    blocksTotal,
    bytesRead: blocksRead * recordBytes + scannedBlocks * codeBytes,
    bytesTotal: blocksTotal * recordBytes,
    macs: group * (2 * headSize * positionsRead +
      dimensions * (scannedPositions + scannedUnits * headSize)),
    macsTotal: group * 2 * headSize * positionsTotal,
    massDropped: units > 0 ? dropped / units : 0,
  };
}

/**
 * Whether a token with so many blocks looks at sketches, and may leave some out: the first block and the
 * last two are always read. As `Plan::reads_all` of the WASM core and `select.ts` have it.
 */
export function isScanned(plan: AttentionPlan, blocks: number): boolean {
  return plan.kind !== "dense" && blocks > Math.max(3, plan.minBlocks);
}
