/** What drawing a token means: every stage over all tokens in rank order, with nothing saved. */
import type { OverriddenDraw } from "../../core/engine/backend.ts";
import type { SamplingParams } from "../../core/engine/engine.ts";

/** Ids by logit descending, ties by id. */
export function rankedIds(logits: Float32Array): number[] {
  return Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
}

/** The stages in llama.cpp's order, as it documents them; some token must be possible. */
export function drawByDefinition(
  logits: Float32Array,
  { topK, topP, minP, temperature = 1 }: Omit<SamplingParams, "seed">,
  u: number,
): number {
  let kept = rankedIds(logits);
  if (temperature === 0) return kept[0]!;
  const masses = (ids: number[], t: number) =>
    ids.map((id) => {
      return logits[id] === logits[kept[0]!] ? 1 : Math.exp((logits[id]! - logits[kept[0]!]!) / t);
    });
  const sum = (values: number[]) => values.reduce((x, y) => x + y, 0);
  if (topK) kept = kept.slice(0, topK);
  if (topP !== undefined && topP < 1) {
    const mass = masses(kept, 1), total = sum(mass);
    let reached = 0;
    kept = kept.filter((_, i) => {
      const wanted = i === 0 || reached < topP * total;
      reached += mass[i]!;
      return wanted;
    });
  }
  if (minP) {
    const threshold = logits[kept[0]!]! + Math.log(minP);
    kept = kept.filter((id, i) => i === 0 || logits[id]! >= threshold);
  }
  const mass = masses(kept, temperature), total = sum(mass);
  let reached = 0;
  return kept.find((_, i) => (reached += mass[i]!) > u * total) ??
    kept.findLast((_, i) => mass[i]! > 0)!;
}

/**
 * As the contract defines `Backend.draw`.
 *
 * @param logits The row; the overrides are written into it.
 */
export function drawFromRow(
  logits: Float32Array,
  { overrides, u, ...stages }: OverriddenDraw,
): number | undefined {
  overrides.ids.forEach((id, i) => logits[id] = overrides.logits[i]!);
  if (logits.every((logit) => logit === -Infinity)) return undefined;
  return drawByDefinition(logits, stages, u);
}
