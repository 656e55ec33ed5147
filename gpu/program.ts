/**
 * The dispatches of a step, in order: embeddings; for each layer queries, keys and values, rotation and
 * cache, attention, its output, gate and up, down; then the output layer and the statistics of its
 * rows. Pipelines and bind groups are made once; a step only chooses tiles and counts workgroups.
 */
import { attendStage, gatherStage, rotateStage } from "./attention_stages.ts";
import { type Dispatch, dispatcher, type Scope, type Stage, type StepShape } from "./dispatch.ts";
import { embedKernel } from "./kernels/embed.ts";
import { MatmulStages } from "./matmul_stages.ts";
import type { ProgramParts } from "./program_parts.ts";
import { drawDispatches, summaryStage, temperedDispatches } from "./row_stages.ts";
import type { LayerWeights } from "./weights.ts";

export class Program {
  readonly #parts: ProgramParts;
  readonly #matmuls: MatmulStages;
  readonly #stages: Stage[] = [];
  /** Those that a step without output rows leaves out. */
  readonly #outputStages: Stage[] = [];
  #tempered: readonly Dispatch[] = [];
  #draw: (overrides: number) => readonly Dispatch[] = () => [];

  private constructor(parts: ProgramParts) {
    this.#parts = parts;
    this.#matmuls = new MatmulStages(parts);
  }

  /** @throws {BackendError} The device refuses a kernel. */
  static async create(parts: ProgramParts): Promise<Program> {
    const program = new Program(parts);
    await program.#build();
    return program;
  }

  /**
   * Compiles what a step of so many tokens and output rows needs, if it was not yet.
   *
   * @throws {BackendError} The device refuses a kernel.
   */
  async prepare(counts: Pick<StepShape, Scope>): Promise<void> {
    await this.#matmuls.prepare(counts);
  }

  /** The dispatches of a step that was prepared. */
  dispatches(shape: StepShape): Dispatch[] {
    const stages = shape.rows > 0 ? [...this.#stages, ...this.#outputStages] : this.#stages;
    return stages.flatMap((stage) => stage(shape));
  }

  /** What looks at one row as `temperedView` says. */
  tempered(): readonly Dispatch[] {
    return this.#tempered;
  }

  /** What draws from `row` as `draw` says, once so many overrides are in place. */
  draw(overrides: number): readonly Dispatch[] {
    return this.#draw(overrides);
  }

  async #build(): Promise<void> {
    const { weights, buffers: { hidden, logits }, config: { rmsEpsilon: norm } } = this.#parts;
    this.#stages.push(await embedStage(this.#parts));
    for (const [index, layer] of weights.layers.entries()) await this.#layer(index, layer);
    this.#outputStages.push(
      this.#matmuls.add(weights.output, "rows", { output: "store", norm }, {
        ...{ x: hidden, y: logits, gain: weights.outputNorm },
      }),
      await summaryStage(this.#parts),
    );
    this.#tempered = await temperedDispatches(this.#parts);
    this.#draw = await drawDispatches(this.#parts);
  }

  /** Of the last layer, only output rows go on once its keys and values are stored. */
  async #layer(index: number, layer: LayerWeights): Promise<void> {
    const parts = this.#parts;
    const { buffers, config, weights, moments } = parts;
    const { hidden, attentionHidden, qkv, attended, activated } = buffers;
    const norm = config.rmsEpsilon;
    this.#stages.push(
      this.#matmuls.add(layer.qkv, "tokens", { output: "store", norm }, {
        ...{ x: hidden, y: qkv, gain: layer.attentionNorm },
      }),
    );
    if (moments) this.#stages.push(await gatherStage(parts, index, moments));
    this.#stages.push(await rotateStage(parts, index));
    const last = index + 1 === weights.layers.length;
    const [stages, scope] = last
      ? [this.#outputStages, "rows"] as const
      : [this.#stages, "tokens"] as const;
    const { identity, outputs } = buffers;
    stages.push(
      await attendStage(parts, index, scope),
      this.#matmuls.add(layer.attentionOutput, scope, { output: "add" }, {
        ...{ x: attended, y: attentionHidden, residual: hidden },
        sources: last ? outputs : identity,
      }),
      this.#matmuls.add(layer.gateUp, scope, { output: "swiglu", norm }, {
        ...{ x: attentionHidden, y: activated, gain: layer.feedForwardNorm },
      }),
      this.#matmuls.add(layer.down, scope, { output: "add" }, {
        ...{ x: activated, y: hidden, residual: attentionHidden, sources: identity },
      }),
    );
  }
}

async function embedStage(parts: ProgramParts): Promise<Stage> {
  const { pipelines, weights: { embedding }, buffers } = parts;
  const gathers = await Promise.all(embedding.parts.map(async ({ type, quants, scales, part }) => {
    const compiled = await pipelines.compile(embedKernel({ type, columns: embedding.columns }));
    const { allTokens: step, tokens, hidden } = buffers;
    return dispatcher(pipelines, compiled, { quants, scales, part, step, tokens, hidden });
  }));
  const rowBytes = 4 * embedding.columns;
  return ({ tokens }) => gathers.map((dispatch) => dispatch(tokens * rowBytes, 1, tokens));
}
