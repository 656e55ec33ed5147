/**
 * The dispatches of a step, in order: embeddings; for each layer queries, keys and values, rotation and
 * cache, attention, its output, gate and up, down; then the output layer and the statistics of its
 * rows. Pipelines and bind groups are made once; a step only chooses tiles and counts workgroups.
 */
import type { ModelConfig } from "../core/model/config.ts";
import {
  attendKernel,
  type AttendParameters,
  headTiles,
  mergeKernel,
  partialFloats,
  splitsOf,
} from "./kernels/attend.ts";
import { drawKernel, overrideGroups, overrideKernel } from "./kernels/draw.ts";
import { embedKernel } from "./kernels/embed.ts";
import {
  matmulKernel,
  type MatmulParameters,
  rowsAtOnce,
  rowsOfThread,
  TILES,
} from "./kernels/matmul.ts";
import { momentsKernel } from "./kernels/moments.ts";
import { rotateKernel } from "./kernels/rotate.ts";
import { CHUNKS_AT_ONCE, chunksOf, rowChunksKernel } from "./kernels/row_chunks.ts";
import { rowSummaryKernel } from "./kernels/row_summary.ts";
import { rowUncertaintyKernel } from "./kernels/row_uncertainty.ts";
import { selectKernel } from "./kernels/select.ts";
import type { KvCache } from "./kv_cache.ts";
import { blockBytes } from "./kv_layout.ts";
import type { Linear } from "./matrix.ts";
import type { Bound, Compiled, Pipelines } from "./pipelines.ts";
import type { MomentBuffers, SketchBuffers } from "./pruning.ts";
import type { StepBuffers } from "./step_buffers.ts";
import type { LayerWeights, ModelWeights } from "./weights.ts";

export interface Dispatch {
  readonly kernel: string;
  readonly pipeline: GPUComputePipeline;
  readonly bindings: GPUBindGroup;
  readonly workgroups: readonly [number, number, number];
  /** Bytes that it moves at the least: weights, cache and activations, each once. */
  readonly bytes: number;
}

/** Records dispatches; each sees what those before it wrote. */
export function record(encoder: GPUCommandEncoder, dispatches: readonly Dispatch[]): void {
  const pass = encoder.beginComputePass();
  for (const { pipeline, bindings, workgroups } of dispatches) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindings);
    pass.dispatchWorkgroups(...workgroups);
  }
  pass.end();
}

/** What decides how many workgroups a step needs. */
export interface StepShape {
  readonly tokens: number;
  readonly rows: number;
  /** Most blocks that a token, and a token with output, attends to. */
  readonly blocks: number;
  readonly outputBlocks: number;
  /** Whether a token's attention may be pruned. */
  readonly pruned: boolean;
}

/** Some dispatches of a step, given its shape. */
type Stage = (shape: StepShape) => Dispatch[];

/** Whether a stage runs over all tokens, or over those with output. */
type Scope = "tokens" | "rows";

/** A part of a matrix, multiplied with a tile of tokens. */
interface Tiled {
  /** Along the part's rows. */
  readonly workgroups: number;
  readonly dispatch: (bytes: number, x: number, y?: number) => Dispatch;
  /** Of the weights, and of a token's input and output. */
  readonly weightBytes: number;
  readonly tokenBytes: number;
}

export interface ProgramParts {
  readonly config: ModelConfig;
  readonly topK: number;
  readonly pipelines: Pipelines;
  readonly weights: ModelWeights;
  readonly buffers: StepBuffers;
  readonly cache: KvCache;
  /** What pruned attention looks at first. */
  readonly sketch?: SketchBuffers | undefined;
  /** Where moments are gathered. */
  readonly moments?: MomentBuffers | undefined;
}

/** A layer's buffer, of which there is one for each layer. */
function of(buffers: readonly GPUBuffer[], layer: number): GPUBuffer {
  const buffer = buffers[layer];
  if (buffer === undefined) throw new RangeError(`Cannot bind layer ${layer}: it has no buffer`);
  return buffer;
}

/** The smallest tile that takes all tokens, else the largest there is. */
const tileOf = (tokens: number): number =>
  TILES.find((tile) => tile >= tokens) ?? Math.max(...TILES);

export class Program {
  readonly #parts: ProgramParts;
  readonly #stages: Stage[] = [];
  readonly #outputStages: Stage[] = [];
  #uncertainty: readonly Dispatch[] = [];
  #draw: ((overrides: number) => readonly Dispatch[]) | undefined;
  /** What makes the matmuls of a tile size, and which sizes were made. */
  readonly #matmuls: Readonly<Record<Scope, ((tile: number) => Promise<void>)[]>> = {
    tokens: [],
    rows: [],
  };
  readonly #prepared: Readonly<Record<Scope, Set<number>>> = { tokens: new Set(), rows: new Set() };

  private constructor(parts: ProgramParts) {
    this.#parts = parts;
  }

  /** @throws {BackendError} The device refuses a kernel. */
  static async create(parts: ProgramParts): Promise<Program> {
    const program = new Program(parts);
    await program.#build();
    return program;
  }

  /** Compiles what a step of so many tokens and output rows needs, if it was not yet. */
  async prepare(counts: Pick<StepShape, "tokens" | "rows">): Promise<void> {
    for (const scope of ["tokens", "rows"] as const) {
      const tile = tileOf(counts[scope]);
      if (counts[scope] === 0 || this.#prepared[scope].has(tile)) continue;
      for (const make of this.#matmuls[scope]) await make(tile);
      this.#prepared[scope].add(tile);
    }
  }

  /** The dispatches of a step that was prepared. */
  dispatches(shape: StepShape): Dispatch[] {
    const stages = shape.rows > 0 ? [...this.#stages, ...this.#outputStages] : this.#stages;
    return stages.flatMap((stage) => stage(shape));
  }

  /** What looks at one row as `temperedView` says. */
  uncertainty(): readonly Dispatch[] {
    return this.#uncertainty;
  }

  /** What draws from `row` as `draw` says, once so many overrides are in place. */
  draw(overrides: number): readonly Dispatch[] {
    return this.#draw?.(overrides) ?? [];
  }

  async #build(): Promise<void> {
    const { weights } = this.#parts;
    this.#stages.push(await this.#embed());
    for (const [index, layer] of weights.layers.entries()) await this.#layer(index, layer);
    this.#outputStages.push(...await this.#output());
    this.#uncertainty = await this.#tempered();
    this.#draw = await this.#drawing();
  }

  /** Of the last layer, only output rows go on once its keys and values are stored. */
  async #layer(index: number, layer: LayerWeights): Promise<void> {
    const { buffers, config, weights } = this.#parts;
    const { hidden, attentionHidden, qkv, attended, activated } = buffers;
    const norm = config.rmsEpsilon;
    this.#stages.push(
      this.#matmul(layer.qkv, "tokens", { output: "store", norm }, {
        ...{ x: hidden, y: qkv, gain: layer.attentionNorm },
      }),
    );
    if (this.#parts.moments) this.#stages.push(await this.#gather(index, this.#parts.moments));
    this.#stages.push(await this.#rotate(index));
    const last = index + 1 === weights.layers.length;
    const [stages, scope] = last
      ? [this.#outputStages, "rows"] as const
      : [this.#stages, "tokens"] as const;
    const { identity, outputs } = buffers;
    stages.push(
      await this.#attend(index, scope),
      this.#matmul(layer.attentionOutput, scope, { output: "add" }, {
        ...{ x: attended, y: attentionHidden, residual: hidden },
        sources: last ? outputs : identity,
      }),
      this.#matmul(layer.gateUp, scope, { output: "swiglu", norm }, {
        ...{ x: attentionHidden, y: activated, gain: layer.feedForwardNorm },
      }),
      this.#matmul(layer.down, scope, { output: "add" }, {
        ...{ x: activated, y: hidden, residual: attentionHidden, sources: identity },
      }),
    );
  }

  /** Bytes of a token's queries, keys and values. */
  get #qkvBytes(): number {
    const { heads, kvHeads, headSize } = this.#parts.config;
    return 4 * (heads + 2 * kvHeads) * headSize;
  }

  #step(scope: Scope): GPUBuffer {
    const { allTokens, outputRows } = this.#parts.buffers;
    return scope === "tokens" ? allTokens : outputRows;
  }

  async #embed(): Promise<Stage> {
    const { pipelines, weights: { embedding }, buffers } = this.#parts;
    const parts = await Promise.all(embedding.parts.map(async ({ type, quants, scales, part }) => {
      const compiled = await pipelines.compile(embedKernel({ type, columns: embedding.columns }));
      const { allTokens: step, tokens, hidden } = buffers;
      return this.#dispatcher(compiled, { quants, scales, part, step, tokens, hidden });
    }));
    const rowBytes = 4 * embedding.columns;
    return ({ tokens }) => parts.map((dispatch) => dispatch(tokens * rowBytes, 1, tokens));
  }

  #matmul(
    linear: Linear,
    scope: Scope,
    parameters: Pick<MatmulParameters, "output" | "norm">,
    bound: Readonly<Record<string, Bound>>,
  ): Stage {
    const { pipelines } = this.#parts;
    const { columns, width, parts } = linear;
    const step = this.#step(scope);
    const byTile = new Map<number, readonly Tiled[]>();
    const prepare = async (tile: number) => {
      const tiled: Tiled[] = [];
      for (const { type, rows, quants, scales, part } of parts) {
        const shape = { type, columns, tile, rows: rowsOfThread(rows, tile), ...parameters };
        const compiled = await pipelines.compile(matmulKernel(shape));
        const given = { quants, scales, part, step, width, ...bound };
        const workgroups = Math.ceil(rows / rowsAtOnce(shape));
        const weightBytes = quants.size + scales.size, tokenBytes = 4 * (columns + rows);
        const dispatch = this.#dispatcher(compiled, given);
        tiled.push({ workgroups, dispatch, weightBytes, tokenBytes });
      }
      byTile.set(tile, tiled);
    };
    this.#matmuls[scope].push(prepare);
    return (shape) => {
      const tile = tileOf(shape[scope]);
      const tiled = byTile.get(tile) ?? [];
      return tiled.map(({ workgroups, dispatch, weightBytes, tokenBytes }) => {
        const bytes = weightBytes + shape[scope] * tokenBytes;
        return dispatch(bytes, workgroups, Math.ceil(shape[scope] / tile));
      });
    };
  }

  async #gather(layer: number, { angles, sums }: MomentBuffers): Promise<Stage> {
    const { pipelines, config: { heads, kvHeads, headSize, rope }, buffers } = this.#parts;
    const kernel = momentsKernel({ heads, kvHeads, headSize, rotated: rope.dimensions });
    const { allTokens: step, qkv } = buffers;
    const dispatch = this.#dispatcher(await pipelines.compile(kernel), {
      ...{ step, angles, qkv },
      sums: of(sums, layer),
    });
    return ({ tokens }) => [dispatch(tokens * this.#qkvBytes, headSize, kvHeads)];
  }

  async #rotate(layer: number): Promise<Stage> {
    const { pipelines, config: { heads, kvHeads, rope }, buffers, cache, sketch } = this.#parts;
    const dimensions = sketch?.dimensions ?? 0;
    const kernel = rotateKernel({ heads, kv: cache.layout, rotated: rope.dimensions, dimensions });
    const { allTokens: step, tokens, tables, angles, qkv } = buffers;
    const dispatch = this.#dispatcher(await pipelines.compile(kernel), {
      ...{ step, tokens, tables, angles, qkv },
      cache: of(cache.layers, layer),
      ...(sketch && { sketch: of(sketch.maps, layer), codes: of(sketch.codes, layer) }),
    });
    return ({ tokens }) => [dispatch(2 * tokens * this.#qkvBytes, kvHeads, tokens)];
  }

  async #attend(layer: number, scope: Scope): Promise<Stage> {
    const { pipelines, config: { heads, kvHeads, headSize }, buffers, cache, sketch } = this.#parts;
    const { blocks, tokens, tables, qkv, partials, attended, counters, slabs, slabTokens } =
      buffers;
    const pruned = sketch !== undefined;
    const parameters: AttendParameters = { heads, kv: cache.layout, blocks, pruned };
    const attend = await pipelines.compile(attendKernel(parameters));
    const merge = await pipelines.compile(mergeKernel(parameters));
    const select = sketch &&
      await pipelines.compile(selectKernel({ ...parameters, dimensions: sketch.dimensions }));
    const step = this.#step(scope);
    const queries = scope === "tokens" ? buffers.identity : buffers.outputs;
    const keys = of(cache.layers, layer);
    const bySlab = slabs.map(({ first, uniform: slab }) => {
      const chosen = sketch && { chosen_blocks: sketch.chosen };
      const bound = { step, slab, queries, tokens, partials, tables, qkv, ...chosen };
      return {
        first,
        select: select && sketch && this.#dispatcher(select, {
          ...bound,
          ...{ sketch: of(sketch.maps, layer), codes: of(sketch.codes, layer), counters },
        }),
        attend: this.#dispatcher(attend, { ...bound, keys, values: keys }),
        merge: this.#dispatcher(merge, { ...bound, attended }),
      };
    });
    const tiles = kvHeads * headTiles(parameters).tiles;
    return (shape) => {
      const count = shape[scope];
      const contextBlocks = scope === "tokens" ? shape.blocks : shape.outputBlocks;
      const splits = splitsOf({ blocks: contextBlocks });
      return bySlab.filter(({ first }) => first < count).flatMap(
        ({ first, select, attend, merge }) => {
          const queries = Math.min(count - first, slabTokens);
          const read = queries * contextBlocks;
          const left = 4 * queries * heads * splits * partialFloats(headSize);
          return [
            ...(select && shape.pruned
              ? [select(read * (sketch?.codeBytes ?? 0), kvHeads, queries)]
              : []),
            attend(read * blockBytes(cache.layout) + left, splits, queries, tiles),
            merge(left, heads, queries),
          ];
        },
      );
    };
  }

  async #output(): Promise<Stage[]> {
    const { pipelines, config, topK, weights, buffers } = this.#parts;
    const { hidden, logits, chunks, summary, plainView: view } = buffers;
    const { vocabularySize: vocabulary, endTokens } = config;
    const kernel = rowSummaryKernel({ vocabulary, topK, endTokens });
    const summarise = this.#dispatcher(await pipelines.compile(kernel), {
      ...{ view, logits, chunks, summary },
    });
    const sums = await this.#rowChunks(view);
    return [
      this.#matmul(weights.output, "rows", { output: "store", norm: config.rmsEpsilon }, {
        ...{ x: hidden, y: logits, gain: weights.outputNorm },
      }),
      ({ rows }) => [sums(rows), summarise(16 * rows * chunksOf({ vocabulary }), rows)],
    ];
  }

  async #tempered(): Promise<readonly Dispatch[]> {
    const { pipelines, config, buffers } = this.#parts;
    const { chunks, uncertainty, temperedView: view } = buffers;
    const kernel = rowUncertaintyKernel({ vocabulary: config.vocabularySize });
    const join = this.#dispatcher(await pipelines.compile(kernel), { view, chunks, uncertainty });
    const sums = await this.#rowChunks(view);
    return [sums(1), join(16 * chunksOf({ vocabulary: config.vocabularySize }), 1)];
  }

  async #drawing(): Promise<(overrides: number) => readonly Dispatch[]> {
    const { pipelines, config: { vocabularySize: vocabulary }, buffers } = this.#parts;
    const { row, draw, drawn, overrideIds: ids, overrideLogits: given } = buffers;
    const bound = { ids, given, count: buffers.overrideCount, row };
    const override = this.#dispatcher(await pipelines.compile(overrideKernel()), bound);
    const kernel = await pipelines.compile(drawKernel({ vocabulary }));
    const choose = this.#dispatcher(kernel, { draw, row, drawn });
    return (overrides) => [
      ...(overrides > 0 ? [override(12 * overrides, overrideGroups(overrides))] : []),
      choose(4 * vocabulary, 1),
    ];
  }

  async #rowChunks(view: GPUBuffer): Promise<(rows: number) => Dispatch> {
    const { pipelines, config: { vocabularySize: vocabulary }, buffers } = this.#parts;
    const { logits, chunks } = buffers;
    const compiled = await pipelines.compile(rowChunksKernel({ vocabulary }));
    const dispatch = this.#dispatcher(compiled, { view, logits, chunks });
    const groups = Math.ceil(chunksOf({ vocabulary }) / CHUNKS_AT_ONCE);
    return (rows) => dispatch(4 * rows * vocabulary, groups, rows);
  }

  #dispatcher({ kernel, pipeline, layout }: Compiled, bound: Readonly<Record<string, Bound>>) {
    const { pipelines } = this.#parts;
    const bindings = pipelines.bind({ kernel, pipeline, layout }, bound);
    return (bytes: number, x: number, y = 1, z = 1): Dispatch => ({
      kernel: kernel.name,
      pipeline,
      bindings,
      workgroups: [x, y, z],
      bytes,
    });
  }
}
