/** One step of the model: what is handed to the device, and what its words say afterwards. */
import type { ForwardResult, SequenceInput } from "../core/engine/backend.ts";
import type { RotaryAngles } from "./angles.ts";
import { attentionOf, counterExcerpts } from "./attention_counts.ts";
import { record, type StepShape } from "./dispatch.ts";
import { summaryWords } from "./kernels/row_summary.ts";
import type { Program } from "./program.ts";
import type { ProgramParts } from "./program_parts.ts";
import { readback } from "./readback.ts";
import { drawnOf, statisticsOf } from "./row_statistics.ts";
import { followRows, writeStep } from "./step_buffers.ts";
import { type StepInput, stepInput, TOKEN_WORDS } from "./step_input.ts";

export interface Step {
  readonly batch: readonly SequenceInput[];
  /** Rows of the step before whose drawn tokens are this one's new ones; empty where those are known. */
  readonly follows: readonly number[];
  readonly input: StepInput;
  readonly shape: StepShape;
}

export function stepOfBatch(
  batch: readonly SequenceInput[],
  follows: readonly number[] = [],
): Step {
  const input = stepInput(batch);
  const shape = {
    ...input,
    tokens: input.tokens.length / TOKEN_WORDS,
    rows: input.outputs.length,
    drawn: input.draws.some((draw) => draw !== undefined && draw.temperature > 0),
  };
  return { batch, follows, input, shape };
}

/**
 * Submits a step that the program was prepared for.
 *
 * @returns What waits for its words: statistics of the rows, then counters of pruned tokens.
 */
export function submitStep(
  gpu: GPUDevice,
  parts: ProgramParts,
  program: Program,
  angles: RotaryAngles,
  { batch, follows, input, shape }: Step,
): () => Promise<ArrayBuffer> {
  const { buffers, moments, topK } = parts;
  writeStep(gpu, buffers, input, angles.of(input.tokens));
  if (moments) {
    const stretched = angles.of(input.tokens, moments.stretch);
    gpu.queue.writeBuffer(moments.angles, 0, stretched);
  }
  const encoder = gpu.createCommandEncoder();
  followRows(encoder, buffers, follows, topK);
  if (input.pruned) encoder.clearBuffer(buffers.counters);
  record(encoder, program.dispatches(shape));
  const read = readback(gpu, encoder, [
    { buffer: buffers.summary, offset: 0, size: 4 * shape.rows * summaryWords(topK) },
    ...counterExcerpts(parts, batch),
  ]);
  gpu.queue.submit([encoder.finish()]);
  return read;
}

/** @param words What `submitStep` waits for. */
export function stepResult(
  parts: ProgramParts,
  { batch, input: { draws }, shape: { rows } }: Step,
  words: Uint32Array<ArrayBuffer>,
): ForwardResult {
  const { topK } = parts;
  const counted = new Float32Array(words.buffer, 4 * rows * summaryWords(topK));
  return {
    rows: draws.map((draw, row) => ({
      ...statisticsOf(words, row, topK),
      ...(draw && { drawn: drawnOf(words, row, topK) }),
    })),
    attention: attentionOf(parts, batch, counted),
  };
}
