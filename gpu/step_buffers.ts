/** What a step reads and writes besides weights and cache, reserved once. */
import { type BackendLimits, BLOCK_SIZE } from "../core/engine/backend.ts";
import type { ModelConfig } from "../core/model/config.ts";
import { chosenWords, partialFloats, splitsOf } from "./kernels/attend.ts";
import { DRAW_WORDS, drawWords } from "./kernels/draw.ts";
import { chunksOf } from "./kernels/row_chunks.ts";
import { SUMMARY_DRAWN, summaryWords } from "./kernels/row_summary.ts";
import { uniformBuffer } from "./matrix.ts";
import { type StepInput, TOKEN_WORDS } from "./step_input.ts";

/** Bytes that attention's partial results may take; larger batches attend slab by slab. */
const PARTIAL_BYTES = 64 * 2 ** 20;

/** The bits of 1 as a float. */
const ONE = 0x3f800000;

/** Queries whose attention is computed at once. */
interface Slab {
  readonly first: number;
  /** Uniform: `first`. */
  readonly uniform: GPUBuffer;
}

export type StepBuffers = ReturnType<typeof stepBuffers>;

/**
 * @param bindingBytes Most bytes of a buffer that a kernel sees.
 * @throws {RangeError} A buffer would have more.
 */
export function stepBuffers(
  gpu: GPUDevice,
  config: ModelConfig,
  limits: BackendLimits,
  bindingBytes: number,
) {
  const { heads, kvHeads, headSize, hiddenSize, feedForwardSize, vocabularySize } = config;
  const { maxBatchTokens: tokens, maxOutputRows: rows, topK, contextLength } = limits;
  const blocks = Math.ceil(contextLength / BLOCK_SIZE);
  const storage = (name: string, words: number, usage = 0): GPUBuffer => {
    const size = Math.max(16, 4 * words);
    if (size > bindingBytes) {
      throw new RangeError(
        `Cannot create WebGPU backend: ${name} of this batch and context take ${size} bytes, ` +
          `allowed are ${bindingBytes}, this device's largest binding`,
      );
    }
    return gpu.createBuffer({ label: name, size, usage: GPUBufferUsage.STORAGE | usage });
  };
  const given = (name: string, words: number) => storage(name, words, GPUBufferUsage.COPY_DST);
  const taken = (name: string, words: number) => storage(name, words, GPUBufferUsage.COPY_SRC);
  const uniform = (bytes: number) =>
    gpu.createBuffer({ size: bytes, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });

  const perToken = heads * splitsOf({ blocks }) * partialFloats(headSize);
  const perSlab = Math.floor(Math.min(PARTIAL_BYTES, bindingBytes) / 4 / perToken);
  const slabTokens = Math.min(tokens, Math.max(1, perSlab));
  const slabs: Slab[] = [];
  for (let first = 0; first < tokens; first += slabTokens) {
    slabs.push({ first, uniform: uniformBuffer(gpu, [first]) });
  }
  const identity = given("queries", tokens);
  const plainView = uniformBuffer(gpu, [0, ONE]);
  gpu.queue.writeBuffer(identity, 0, Uint32Array.from({ length: tokens }, (_, i) => i));
  return {
    blocks,
    slabTokens,
    slabs,
    /** Uniforms: tokens, output rows. */
    allTokens: uniform(16),
    outputRows: uniform(16),
    tokens: given("tokens", tokens * TOKEN_WORDS),
    tables: given("block tables", tokens * blocks),
    angles: given("angles", tokens * config.rope.dimensions),
    /** Which token each query is of: each its own, or those with output. */
    identity,
    outputs: given("outputs", rows),
    /** The residual stream before and after a layer's attention. */
    hidden: storage("hidden states", tokens * hiddenSize),
    attentionHidden: storage("hidden states", tokens * hiddenSize),
    qkv: storage("queries, keys and values", tokens * (heads + 2 * kvHeads) * headSize),
    partials: storage("partial attention", slabTokens * perToken),
    attended: storage("attention", tokens * heads * headSize),
    activated: storage("activations", tokens * feedForwardSize),
    /** A row to draw from, or to pick from: some of its ids, and what stands in for their logits. */
    row: given("row", vocabularySize),
    ids: given("ids", vocabularySize),
    idCount: uniform(16),
    overrides: given("overrides", vocabularySize),
    picked: taken("picked logits", vocabularySize),
    /** How it is drawn from, and its statistics with what was drawn. */
    rowDraw: given("draw", DRAW_WORDS),
    rowSummary: taken("statistics", summaryWords(topK)),
    draws: given("draws", rows * DRAW_WORDS),
    logits: taken("logits", rows * vocabularySize),
    chunks: storage("sums of logits", rows * 4 * chunksOf({ vocabulary: vocabularySize })),
    summary: taken("statistics", rows * summaryWords(topK)),
    uncertainty: taken("uncertainty", 4),
    /** How rows are looked at: as they are, or one at another temperature. */
    plainView,
    temperedView: uniform(16),
    /** Blocks read and share left out, of each token and KV head. */
    counters: storage(
      "counters",
      tokens * kvHeads * 2,
      GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    ),
    chosenWords: slabTokens * kvHeads * chosenWords(blocks),
  };
}

/** Hands a step's input to the device. */
export function writeStep(
  { queue }: GPUDevice,
  buffers: StepBuffers,
  input: StepInput,
  angles: Float32Array<ArrayBuffer>,
): void {
  queue.writeBuffer(buffers.allTokens, 0, Uint32Array.of(input.tokens.length / TOKEN_WORDS));
  queue.writeBuffer(buffers.tokens, 0, input.tokens);
  queue.writeBuffer(buffers.tables, 0, input.tables);
  queue.writeBuffer(buffers.angles, 0, angles);
  if (input.outputs.length === 0) return;
  queue.writeBuffer(buffers.outputRows, 0, Uint32Array.of(input.outputs.length));
  queue.writeBuffer(buffers.outputs, 0, input.outputs);
  queue.writeBuffer(buffers.draws, 0, drawWords(input.draws));
}

/**
 * Records that a step's first tokens are those drawn from rows of the step before, whose summaries are
 * still in place.
 */
export function followRows(
  encoder: GPUCommandEncoder,
  { summary, tokens }: StepBuffers,
  rows: readonly number[],
  topK: number,
): void {
  for (const [token, row] of rows.entries()) {
    const drawn = row * summaryWords(topK) + SUMMARY_DRAWN;
    encoder.copyBufferToBuffer(summary, 4 * drawn, tokens, 4 * token * TOKEN_WORDS, 4);
  }
}
