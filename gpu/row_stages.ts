/** What becomes of rows of logits: statistics of all, and one at a time at a temperature, or drawn. */
import { type Dispatch, dispatcher, type Stage } from "./dispatch.ts";
import { drawKernel } from "./kernels/draw.ts";
import { CHUNKS_AT_ONCE, chunksOf, rowChunksKernel } from "./kernels/row_chunks.ts";
import { idGroups, overrideKernel, pickKernel } from "./kernels/row_ids.ts";
import { rowSummaryKernel } from "./kernels/row_summary.ts";
import { rowUncertaintyKernel } from "./kernels/row_uncertainty.ts";
import type { ProgramParts } from "./program_parts.ts";

/** The statistics of all output rows. */
export async function summaryStage(parts: ProgramParts): Promise<Stage> {
  const { pipelines, config, topK, buffers } = parts;
  const { logits, chunks, summary, plainView: view } = buffers;
  const { vocabularySize: vocabulary, endTokens } = config;
  const kernel = rowSummaryKernel({ vocabulary, topK, endTokens });
  const summarise = dispatcher(pipelines, await pipelines.compile(kernel), {
    ...{ view, logits, chunks, summary },
  });
  const sums = await rowChunks(parts, view);
  const chunkBytes = 16 * chunksOf({ vocabulary });
  return ({ rows }) => [sums(rows), summarise(rows * chunkBytes, rows)];
}

/** Dispatches that look at one row. */
export interface RowDispatches {
  /** Sums it up as `temperedView` says. */
  readonly tempered: readonly Dispatch[];
  /** Draws from `row` as `draw` says, once so many overrides are in place. */
  readonly draw: (overrides: number) => readonly Dispatch[];
  /** Collects so many logits of `row`, whose ids are in place. */
  readonly pick: (count: number) => readonly Dispatch[];
}

export async function rowDispatches(parts: ProgramParts): Promise<RowDispatches> {
  const [tempered, draw, pick] = await Promise.all([
    temperedDispatches(parts),
    drawDispatches(parts),
    pickDispatches(parts),
  ]);
  return { tempered, draw, pick };
}

async function temperedDispatches(parts: ProgramParts): Promise<readonly Dispatch[]> {
  const { pipelines, config, buffers } = parts;
  const { chunks, uncertainty, temperedView: view } = buffers;
  const kernel = rowUncertaintyKernel({ vocabulary: config.vocabularySize });
  const join = dispatcher(pipelines, await pipelines.compile(kernel), {
    view,
    chunks,
    uncertainty,
  });
  const sums = await rowChunks(parts, view);
  return [sums(1), join(16 * chunksOf({ vocabulary: config.vocabularySize }), 1)];
}

async function drawDispatches(parts: ProgramParts): Promise<RowDispatches["draw"]> {
  const { pipelines, config: { vocabularySize: vocabulary }, buffers } = parts;
  const { row, draw, drawn, ids, idCount: count, overrides: given } = buffers;
  const bound = { ids, given, count, row };
  const override = dispatcher(pipelines, await pipelines.compile(overrideKernel()), bound);
  const kernel = await pipelines.compile(drawKernel({ vocabulary }));
  const choose = dispatcher(pipelines, kernel, { draw, row, drawn });
  return (overrides) => [
    ...(overrides > 0 ? [override(12 * overrides, idGroups(overrides))] : []),
    choose(4 * vocabulary, 1),
  ];
}

async function pickDispatches(parts: ProgramParts): Promise<RowDispatches["pick"]> {
  const { pipelines, buffers: { row, ids, idCount: count, picked } } = parts;
  const kernel = await pipelines.compile(pickKernel());
  const pick = dispatcher(pipelines, kernel, { ids, count, row, picked });
  return (count) => [pick(12 * count, idGroups(count))];
}

async function rowChunks(
  parts: ProgramParts,
  view: GPUBuffer,
): Promise<(rows: number) => Dispatch> {
  const { pipelines, config: { vocabularySize: vocabulary }, buffers } = parts;
  const { logits, chunks } = buffers;
  const compiled = await pipelines.compile(rowChunksKernel({ vocabulary }));
  const dispatch = dispatcher(pipelines, compiled, { view, logits, chunks });
  const groups = Math.ceil(chunksOf({ vocabulary }) / CHUNKS_AT_ONCE);
  return (rows) => dispatch(4 * rows * vocabulary, groups, rows);
}
