/** What the dispatches of a step are bound to. */
import type { Arithmetic } from "../core/engine/arithmetic.ts";
import type { ModelConfig } from "../core/model/config.ts";
import type { Scope } from "./dispatch.ts";
import type { KvCache } from "./kv_cache.ts";
import type { Pipelines } from "./pipelines.ts";
import type { MomentBuffers, SketchBuffers } from "./pruning.ts";
import type { StepBuffers } from "./step_buffers.ts";
import type { ModelWeights } from "./weights.ts";

export interface ProgramParts {
  readonly config: ModelConfig;
  readonly topK: number;
  readonly arithmetic: Arithmetic;
  /** Whether prompts' activations go through workgroup memory. */
  readonly staging: boolean;
  readonly pipelines: Pipelines;
  readonly weights: ModelWeights;
  readonly buffers: StepBuffers;
  readonly cache: KvCache;
  /** What pruned attention looks at first. */
  readonly sketch?: SketchBuffers | undefined;
  /** Where moments are gathered. */
  readonly moments?: MomentBuffers | undefined;
}

/** The uniform with how many tokens, or output rows, a step has. */
export const stepOf = ({ buffers }: ProgramParts, scope: Scope): GPUBuffer =>
  scope === "tokens" ? buffers.allTokens : buffers.outputRows;

/** A layer's buffer, of which there is one for each layer. */
export function ofLayer(buffers: readonly GPUBuffer[], layer: number): GPUBuffer {
  const buffer = buffers[layer];
  if (buffer === undefined) throw new RangeError(`Cannot bind layer ${layer}: it has no buffer`);
  return buffer;
}
