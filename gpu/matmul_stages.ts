/** The matmuls of a step, by how they are cut: each is compiled when a step first needs its cut. */
import { type Dispatch, dispatcher, type Scope, type Stage, type StepShape } from "./dispatch.ts";
import { matmulKernel, rowsAtOnce } from "./kernels/matmul.ts";
import type { MatmulParameters } from "./kernels/matmul_parameters.ts";
import { type Cut, cutOf, tileOf } from "./kernels/matmul_tiles.ts";
import type { Linear, MatrixPart } from "./matrix.ts";
import type { Bound } from "./pipelines.ts";
import { type ProgramParts, stepOf } from "./program_parts.ts";

/** A part of a matrix, multiplied with a tile of tokens. */
interface Tiled {
  /** Along the part's rows. */
  readonly workgroups: number;
  readonly dispatch: (bytes: number, x: number, y?: number) => Dispatch;
  /** Of the weights, and of a token's input and output. */
  readonly weightBytes: number;
  readonly tokenBytes: number;
}

export class MatmulStages {
  readonly #parts: ProgramParts;
  /** What makes the matmuls of a cut, and which cuts were made. */
  readonly #makers: Readonly<Record<Scope, ((cut: Cut) => Promise<void>)[]>> = {
    tokens: [],
    rows: [],
  };
  readonly #made: Readonly<Record<Scope, Set<Cut>>> = { tokens: new Set(), rows: new Set() };

  constructor(parts: ProgramParts) {
    this.#parts = parts;
  }

  /**
   * Compiles what a step of so many tokens and output rows needs, if it was not yet.
   *
   * @throws {BackendError} The device refuses a kernel.
   */
  async prepare(counts: Pick<StepShape, Scope>): Promise<void> {
    await Promise.all((["tokens", "rows"] as const).map(async (scope) => {
      const cut = cutOf(counts[scope], this.#parts.staging);
      if (counts[scope] === 0 || this.#made[scope].has(cut)) return;
      await Promise.all(this.#makers[scope].map((make) => make(cut)));
      this.#made[scope].add(cut);
    }));
  }

  /** @param bound What the kernel is bound to besides the weights. */
  add(
    linear: Linear,
    scope: Scope,
    parameters: Pick<MatmulParameters, "output" | "norm">,
    bound: Readonly<Record<string, Bound>>,
  ): Stage {
    const byCut = new Map<Cut, readonly Tiled[]>();
    this.#makers[scope].push(async (cut) => {
      const step = stepOf(this.#parts, scope);
      const made = linear.parts.map((part) =>
        this.#tiled(linear, part, { ...parameters, tile: tileOf(cut, part.rows) }, {
          step,
          ...bound,
        })
      );
      byCut.set(cut, await Promise.all(made));
    });
    return (shape) => {
      const count = shape[scope], cut = cutOf(count, this.#parts.staging);
      const tiled = byCut.get(cut) ?? [];
      return tiled.map(({ workgroups, dispatch, weightBytes, tokenBytes }) =>
        dispatch(weightBytes + count * tokenBytes, workgroups, Math.ceil(count / cut.tokens))
      );
    };
  }

  async #tiled(
    { columns, width }: Linear,
    { type, rows, quants, scales, part }: MatrixPart,
    parameters: Pick<MatmulParameters, "output" | "norm" | "tile">,
    bound: Readonly<Record<string, Bound>>,
  ): Promise<Tiled> {
    const { pipelines, arithmetic } = this.#parts;
    const shape = { type, columns, arithmetic, ...parameters };
    const compiled = await pipelines.compile(matmulKernel(shape));
    return {
      workgroups: Math.ceil(rows / rowsAtOnce(shape)),
      dispatch: dispatcher(pipelines, compiled, { quants, scales, part, width, ...bound }),
      weightBytes: quants.size + scales.size,
      tokenBytes: 4 * (columns + rows),
    };
  }
}
