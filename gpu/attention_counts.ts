/** What the GPU counted while it attended, and the figures that follow from it. */
import { attentionStats, type BlockCost } from "../core/engine/attention_cost.ts";
import type { AttentionStats, SequenceInput } from "../core/engine/backend.ts";
import type { ProgramParts } from "./program_parts.ts";
import type { Excerpt } from "./readback.ts";

/** Where the counters of the pruned sequences lie: blocks and share left out, a token and KV head. */
export function counterExcerpts(
  { config, buffers: { counters: buffer } }: ProgramParts,
  batch: readonly SequenceInput[],
): Excerpt[] {
  const perToken = 8 * config.kvHeads;
  let first = 0;
  return batch.flatMap(({ tokens, attention }) => {
    const excerpt = { buffer, offset: first * perToken, size: tokens.length * perToken };
    first += tokens.length;
    return attention.kind === "dense" ? [] : [excerpt];
  });
}

/** @param counted What `counterExcerpts` says, one sequence after the other. */
export function attentionOf(
  { config, cache, sketch }: ProgramParts,
  batch: readonly SequenceInput[],
  counted: Float32Array,
): AttentionStats[] {
  const codeBytes = (sketch?.codeBytes ?? 0) / config.kvHeads;
  const parts = config.layers * config.kvHeads;
  const cost: BlockCost = {
    recordBytes: cache.blockBytes / parts - codeBytes,
    codeBytes,
    dimensions: sketch?.dimensions ?? 0,
  };
  let at = 0;
  return batch.map((part) => {
    if (part.attention.kind === "dense") return attentionStats(config, part, undefined, cost);
    const end = at + 2 * config.kvHeads * part.tokens.length;
    let blocks = 0, dropped = 0;
    for (; at < end; at += 2) {
      blocks += counted[at] ?? NaN;
      dropped += counted[at + 1] ?? NaN;
    }
    return attentionStats(config, part, { blocks, dropped }, cost);
  });
}
