/** The matmuls of a step, by tile of tokens: each is compiled when a step first needs its tile. */
import { type Dispatch, dispatcher, type Scope, type Stage, type StepShape } from "./dispatch.ts";
import {
  matmulKernel,
  type MatmulParameters,
  rowsAtOnce,
  rowsOfThread,
  TILES,
} from "./kernels/matmul.ts";
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

/** The smallest tile that takes all tokens, else the largest there is. */
const tileOf = (tokens: number): number =>
  TILES.find((tile) => tile >= tokens) ?? Math.max(...TILES);

export class MatmulStages {
  readonly #parts: ProgramParts;
  /** What makes the matmuls of a tile, and which tiles were made. */
  readonly #makers: Readonly<Record<Scope, ((tile: number) => Promise<void>)[]>> = {
    tokens: [],
    rows: [],
  };
  readonly #made: Readonly<Record<Scope, Set<number>>> = { tokens: new Set(), rows: new Set() };

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
      const tile = tileOf(counts[scope]);
      if (counts[scope] === 0 || this.#made[scope].has(tile)) return;
      await Promise.all(this.#makers[scope].map((make) => make(tile)));
      this.#made[scope].add(tile);
    }));
  }

  /** @param bound What the kernel is bound to besides the weights. */
  add(
    linear: Linear,
    scope: Scope,
    parameters: Pick<MatmulParameters, "output" | "norm">,
    bound: Readonly<Record<string, Bound>>,
  ): Stage {
    const byTile = new Map<number, readonly Tiled[]>();
    this.#makers[scope].push(async (tile) => {
      const step = stepOf(this.#parts, scope);
      const made = linear.parts.map((part) =>
        this.#tiled(linear, part, { ...parameters, tile }, { step, ...bound })
      );
      byTile.set(tile, await Promise.all(made));
    });
    return (shape) => {
      const count = shape[scope], tile = tileOf(count);
      const tiled = byTile.get(tile) ?? [];
      return tiled.map(({ workgroups, dispatch, weightBytes, tokenBytes }) =>
        dispatch(weightBytes + count * tokenBytes, workgroups, Math.ceil(count / tile))
      );
    };
  }

  async #tiled(
    { columns, width }: Linear,
    { type, rows, quants, scales, part }: MatrixPart,
    parameters: Pick<MatmulParameters, "output" | "norm" | "tile">,
    bound: Readonly<Record<string, Bound>>,
  ): Promise<Tiled> {
    const { pipelines } = this.#parts;
    const shape = { type, columns, rows: rowsOfThread(rows, parameters.tile), ...parameters };
    const compiled = await pipelines.compile(matmulKernel(shape));
    return {
      workgroups: Math.ceil(rows / rowsAtOnce(shape)),
      dispatch: dispatcher(pipelines, compiled, { quants, scales, part, width, ...bound }),
      weightBytes: quants.size + scales.size,
      tokenBytes: 4 * (columns + rows),
    };
  }
}
