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
import { summaryStage } from "./row_stages.ts";
import type { LayerWeights } from "./weights.ts";

export class Program {
  readonly #parts: ProgramParts;
  readonly #matmuls: MatmulStages;
  readonly #stages: Stage[] = [];
  /** Those that a step without output rows leaves out. */
  readonly #outputStages: Stage[] = [];

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

  /** All kernels are compiled side by side; only the order of stages is that of a step. */
  async #build(): Promise<void> {
    const parts = this.#parts;
    const { weights, buffers: { hidden, logits }, config: { rmsEpsilon: norm } } = parts;
    const output = this.#matmuls.add(weights.output, "rows", { output: "store", norm }, {
      ...{ x: hidden, y: logits, gain: weights.outputNorm },
    });
    const [embed, layers, summary] = await Promise.all([
      embedStage(parts),
      Promise.all(weights.layers.map((layer, index) => this.#layer(index, layer))),
      summaryStage(parts),
    ]);
    this.#stages.push(embed);
    for (const { stored, rest, scope } of layers) {
      this.#stages.push(...stored);
      (scope === "rows" ? this.#outputStages : this.#stages).push(...rest);
    }
    this.#outputStages.push(output, summary);
  }

  /** Of the last layer, only output rows go on once its keys and values are stored. */
  async #layer(index: number, layer: LayerWeights): Promise<LayerStages> {
    const parts = this.#parts;
    const { buffers, config, weights, moments } = parts;
    const { hidden, attentionHidden, qkv, attended, activated, identity, outputs } = buffers;
    const norm = config.rmsEpsilon;
    const last = index + 1 === weights.layers.length;
    const scope = last ? "rows" : "tokens";
    const project = this.#matmuls.add(layer.qkv, "tokens", { output: "store", norm }, {
      ...{ x: hidden, y: qkv, gain: layer.attentionNorm },
    });
    const feedForward = [
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
    ];
    const [gather, rotate, attend] = await Promise.all([
      moments && gatherStage(parts, index, moments),
      rotateStage(parts, index),
      attendStage(parts, index, scope),
    ]);
    const stored = [project, ...(gather ? [gather] : []), rotate];
    return { stored, rest: [attend, ...feedForward], scope };
  }
}

/** What a layer does until its keys and values are stored, then the rest, over tokens or rows. */
interface LayerStages {
  readonly stored: readonly Stage[];
  readonly rest: readonly Stage[];
  readonly scope: Scope;
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
