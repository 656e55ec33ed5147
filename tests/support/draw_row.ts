/** Draws a token from a whole row by sorting it, in double precision, as the contract defines `Draw`. */
import type { Draw } from "../../core/engine/backend.ts";

/** @param logits The row; the overrides are written into it. */
export function drawFromRow(logits: Float32Array, draw: Draw): number | undefined {
  const { overrides, topK, topP, minP, temperature, u } = draw;
  overrides.ids.forEach((id, i) => logits[id] = overrides.logits[i] ?? NaN);
  const at = (id: number) => logits[id] ?? -Infinity;
  const ranked = Uint32Array.from(logits.keys()).filter((id) => at(id) > -Infinity)
    .sort((a, b) => at(b) - at(a) || a - b);
  const [best] = ranked;
  if (best === undefined || temperature === 0) return best;
  const max = at(best);
  let kept = topK === 0 ? ranked : ranked.subarray(0, topK);
  if (topP < 1) {
    const last = rankAt(kept, (id) => Math.exp(at(id) - max), (sum, all) => sum >= topP * all);
    kept = kept.subarray(0, last + 1);
  }
  if (minP > 0) {
    const beyond = kept.findIndex((id) => at(id) < max + Math.log(minP));
    if (beyond > 0) kept = kept.subarray(0, beyond);
  }
  const weight = (id: number) => Math.exp((at(id) - max) / temperature);
  return kept[rankAt(kept, weight, (sum, all) => sum > u * all)];
}

/** The first rank at which the running mass passes; the last that weighs anything where none does. */
function rankAt(
  ids: Uint32Array,
  weight: (id: number) => number,
  passes: (sum: number, all: number) => boolean,
): number {
  const weights = Float64Array.from(ids, weight);
  const all = weights.reduce((sum, x) => sum + x, 0);
  let sum = 0;
  const rank = weights.findIndex((x) => passes(sum += x, all));
  return rank >= 0 ? rank : weights.findLastIndex((x) => x > 0);
}
