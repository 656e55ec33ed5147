/** The matmuls of a step, by how they are cut: each is compiled when a step first needs its cut. */
import type { Arithmetic } from "../core/engine/arithmetic.ts";
import { type Dispatch, dispatcher, type Scope, type Stage, type StepShape } from "./dispatch.ts";
import { matmulKernel, rowsAtOnce, takesBoth } from "./kernels/matmul.ts";
import type { MatmulParameters } from "./kernels/matmul_parameters.ts";
import { type Cut, cutOf, tileOf } from "./kernels/matmul_tiles.ts";
import type { Linear, MatrixPart } from "./matrix.ts";
import type { Bound } from "./pipelines.ts";
import { type ProgramParts, stepOf } from "./program_parts.ts";

/** Parts of a matrix, multiplied with a tile of tokens. */
interface Tiled {
  /** Along the parts' rows. */
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
      const made = joined(linear.parts, this.#parts.arithmetic).map((parts) =>
        this.#tiled(linear, parts, cut, parameters, { step, ...bound })
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
    [part, second]: Joined,
    cut: Cut,
    parameters: Pick<MatmulParameters, "output" | "norm">,
    bound: Readonly<Record<string, Bound>>,
  ): Promise<Tiled> {
    const { pipelines, arithmetic } = this.#parts;
    const parts = second ? [part, second] : [part];
    const rows = sumOf(parts, ({ rows }) => rows);
    const shape = {
      ...{ type: part.type, second: second?.type, columns, arithmetic, ...parameters },
      tile: tileOf(cut, rows),
    };
    const compiled = await pipelines.compile(matmulKernel(shape));
    return {
      workgroups: sumOf(parts, ({ rows }) => Math.ceil(rows / rowsAtOnce(shape))),
      dispatch: dispatcher(pipelines, compiled, {
        ...{ quants: part.quants, scales: part.scales, part: part.part, width },
        ...(second && { quants2: second.quants, scales2: second.scales, part2: second.part }),
        ...bound,
      }),
      weightBytes: sumOf(parts, ({ quants, scales }) => quants.size + scales.size),
      tokenBytes: 4 * (columns + rows),
    };
  }
}

/** A part, or two that differ in type. */
type Joined = readonly [MatrixPart, MatrixPart?];

/** Neighbours that differ in type share a dispatch where one kernel takes both. */
function joined(parts: readonly MatrixPart[], arithmetic: Arithmetic): readonly Joined[] {
  const [part, next, ...rest] = parts;
  if (part === undefined) return [];
  if (next && next.type !== part.type && takesBoth(part.type, next.type, arithmetic)) {
    return [[part, next], ...joined(rest, arithmetic)];
  }
  return [[part], ...joined(parts.slice(1), arithmetic)];
}

const sumOf = <T>(items: readonly T[], value: (item: T) => number): number =>
  items.reduce((sum, item) => sum + value(item), 0);
