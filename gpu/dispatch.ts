/** A kernel bound to its buffers, and what decides how often a step runs it. */
import type { Bound, Compiled, Pipelines } from "./pipelines.ts";

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
  /** Whether a row is drawn from at a temperature. */
  readonly drawn: boolean;
}

/** Some dispatches of a step, given its shape. */
export type Stage = (shape: StepShape) => readonly Dispatch[];

/** Whether a stage runs over all tokens, or over those with output. */
export type Scope = "tokens" | "rows";

/** Binds a kernel; what comes back dispatches it, given the bytes that it moves and workgroups. */
export function dispatcher(
  pipelines: Pipelines,
  compiled: Compiled,
  bound: Readonly<Record<string, Bound>>,
) {
  const bindings = pipelines.bind(compiled, bound);
  const { kernel, pipeline } = compiled;
  return (bytes: number, x: number, y = 1, z = 1): Dispatch => ({
    kernel: kernel.name,
    pipeline,
    bindings,
    workgroups: [x, y, z],
    bytes,
  });
}
