/** A layer's attention as dispatches: rotation, cache, choice of blocks, splits and their merging. */
import { dispatcher, type Scope, type Stage } from "./dispatch.ts";
import {
  attendKernel,
  type AttendParameters,
  headTiles,
  partialFloats,
  splitsOf,
} from "./kernels/attend.ts";
import { mergeKernel } from "./kernels/merge.ts";
import { momentsKernel } from "./kernels/moments.ts";
import { rotateKernel } from "./kernels/rotate.ts";
import { selectKernel } from "./kernels/select.ts";
import { blockBytes } from "./kv_layout.ts";
import { ofLayer, type ProgramParts, stepOf } from "./program_parts.ts";
import type { MomentBuffers } from "./pruning.ts";

/** Bytes of a token's queries, keys and values. */
const qkvBytes = ({ config: { heads, kvHeads, headSize } }: ProgramParts): number =>
  4 * (heads + 2 * kvHeads) * headSize;

/** Adds up moments of a layer's queries and keys, before they are rotated. */
export async function gatherStage(
  parts: ProgramParts,
  layer: number,
  { angles, sums }: MomentBuffers,
): Promise<Stage> {
  const { pipelines, config: { heads, kvHeads, headSize, rope }, buffers } = parts;
  const kernel = momentsKernel({ heads, kvHeads, headSize, rotated: rope.dimensions });
  const { allTokens: step, qkv } = buffers;
  const dispatch = dispatcher(pipelines, await pipelines.compile(kernel), {
    ...{ step, angles, qkv },
    sums: ofLayer(sums, layer),
  });
  return ({ tokens }) => [dispatch(tokens * qkvBytes(parts), headSize, kvHeads)];
}

/** Rotates a layer's queries and keys, and writes its part of the cache. */
export async function rotateStage(parts: ProgramParts, layer: number): Promise<Stage> {
  const { pipelines, config: { heads, kvHeads, rope }, buffers, cache, sketch } = parts;
  const dimensions = sketch?.dimensions ?? 0;
  const kernel = rotateKernel({ heads, kv: cache.layout, rotated: rope.dimensions, dimensions });
  const { allTokens: step, tokens, tables, angles, qkv } = buffers;
  const dispatch = dispatcher(pipelines, await pipelines.compile(kernel), {
    ...{ step, tokens, tables, angles, qkv },
    cache: ofLayer(cache.layers, layer),
    ...(sketch && { sketch: ofLayer(sketch.maps, layer), codes: ofLayer(sketch.codes, layer) }),
  });
  return ({ tokens }) => [dispatch(2 * tokens * qkvBytes(parts), kvHeads, tokens)];
}

/** A layer's attention: where plans prune, first the choice of blocks. */
export async function attendStage(
  parts: ProgramParts,
  layer: number,
  scope: Scope,
): Promise<Stage> {
  const { pipelines, config: { heads, kvHeads, headSize }, buffers, cache, sketch } = parts;
  const { blocks, tokens, tables, qkv, partials, attended, counters, slabs, slabTokens } = buffers;
  const pruned = sketch !== undefined;
  const parameters: AttendParameters = { heads, kv: cache.layout, blocks, pruned };
  const attend = await pipelines.compile(attendKernel(parameters));
  const merge = await pipelines.compile(mergeKernel(parameters));
  const select = sketch &&
    await pipelines.compile(selectKernel({ ...parameters, dimensions: sketch.dimensions }));
  const step = stepOf(parts, scope);
  const queries = scope === "tokens" ? buffers.identity : buffers.outputs;
  const keys = ofLayer(cache.layers, layer);
  const bySlab = slabs.map(({ first, uniform: slab }) => {
    const chosen = sketch && { chosen_blocks: sketch.chosen };
    const bound = { step, slab, queries, tokens, partials, tables, qkv, ...chosen };
    return {
      first,
      select: select && sketch && dispatcher(pipelines, select, {
        ...bound,
        ...{ sketch: ofLayer(sketch.maps, layer), codes: ofLayer(sketch.codes, layer), counters },
      }),
      attend: dispatcher(pipelines, attend, { ...bound, keys, values: keys }),
      merge: dispatcher(pipelines, merge, { ...bound, attended }),
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
