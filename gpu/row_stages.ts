/** What becomes of rows of logits: statistics, tokens drawn, and single rows that are asked about. */
import { type Dispatch, dispatcher, type Stage } from "./dispatch.ts";
import { drawKernel } from "./kernels/draw.ts";
import { CHUNKS_AT_ONCE, chunksOf, rowChunksKernel } from "./kernels/row_chunks.ts";
import { idGroups, overrideKernel, pickKernel } from "./kernels/row_ids.ts";
import { rowSummaryKernel } from "./kernels/row_summary.ts";
import { rowUncertaintyKernel } from "./kernels/row_uncertainty.ts";
import type { ProgramParts } from "./program_parts.ts";

/** Rows of logits, and what is made of them. */
interface Rows {
  readonly logits: GPUBuffer;
  readonly chunks: GPUBuffer;
  readonly summary: GPUBuffer;
  readonly draws: GPUBuffer;
}

/** The statistics of all output rows, and where it is asked for a token of each. */
export async function summaryStage(parts: ProgramParts): Promise<Stage> {
  const { summarise, draw } = await summaryDispatches(parts, parts.buffers);
  return ({ rows, drawn }) => [...summarise(rows), ...(drawn ? [draw(rows)] : [])];
}

/** Dispatches that look at one row. */
export interface RowDispatches {
  /** Sums it up as `temperedView` says. */
  readonly tempered: readonly Dispatch[];
  /** Draws from `row` as `rowDraw` says, once so many overrides are in place. */
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
  const sums = await rowChunks(parts, view, buffers);
  return [sums(1), join(16 * chunksOf({ vocabulary: config.vocabularySize }), 1)];
}

async function drawDispatches(parts: ProgramParts): Promise<RowDispatches["draw"]> {
  const { pipelines, buffers } = parts;
  const { row, ids, idCount: count, overrides: given, chunks } = buffers;
  const bound = { ids, given, count, row };
  const override = dispatcher(pipelines, await pipelines.compile(overrideKernel()), bound);
  const { summarise, draw } = await summaryDispatches(parts, {
    ...{ logits: row, chunks, summary: buffers.rowSummary, draws: buffers.rowDraw },
  });
  return (overrides) => [
    ...(overrides > 0 ? [override(12 * overrides, idGroups(overrides))] : []),
    ...summarise(1),
    draw(1),
  ];
}

async function pickDispatches(parts: ProgramParts): Promise<RowDispatches["pick"]> {
  const { pipelines, buffers: { row, ids, idCount: count, picked } } = parts;
  const kernel = await pipelines.compile(pickKernel());
  const pick = dispatcher(pipelines, kernel, { ids, count, row, picked });
  return (count) => [pick(12 * count, idGroups(count))];
}

/** What makes statistics of so many rows, and what then draws from each. */
async function summaryDispatches(parts: ProgramParts, { logits, chunks, summary, draws }: Rows) {
  const { pipelines, config, topK, buffers: { plainView: view } } = parts;
  const { vocabularySize: vocabulary, endTokens } = config;
  const [summaries, draw] = await Promise.all([
    pipelines.compile(rowSummaryKernel({ vocabulary, topK, endTokens })),
    pipelines.compile(drawKernel({ vocabulary, topK })),
  ]);
  const join = dispatcher(pipelines, summaries, { view, logits, chunks, summary });
  const choose = dispatcher(pipelines, draw, { draws, logits, summary });
  const sums = await rowChunks(parts, view, { logits, chunks });
  const chunkBytes = 16 * chunksOf({ vocabulary });
  return {
    summarise: (rows: number) => [sums(rows), join(rows * chunkBytes, rows)],
    draw: (rows: number) => choose(4 * rows * topK, rows),
  };
}

async function rowChunks(
  parts: ProgramParts,
  view: GPUBuffer,
  { logits, chunks }: Pick<Rows, "logits" | "chunks">,
): Promise<(rows: number) => Dispatch> {
  const { pipelines, config: { vocabularySize: vocabulary } } = parts;
  const compiled = await pipelines.compile(rowChunksKernel({ vocabulary }));
  const dispatch = dispatcher(pipelines, compiled, { view, logits, chunks });
  const groups = Math.ceil(chunksOf({ vocabulary }) / CHUNKS_AT_ONCE);
  return (rows) => dispatch(4 * rows * vocabulary, groups, rows);
}
