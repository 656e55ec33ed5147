/**
 * Draws that depend on a row and the request alone, so that whoever has the row can carry them out:
 * a step draws these by itself, and the one after it may begin on tokens that nobody has read.
 */
import type { Draw } from "../backend.ts";
import type { SamplingParams } from "../engine.ts";
import type { Sequence } from "../sequence.ts";
import { uniform } from "./random.ts";

/** @param u Random number in [0, 1). */
export function drawOf(sampling: SamplingParams, u: number): Draw {
  const { topK = 0, topP = 1, minP = 0, temperature = 1 } = sampling;
  return { topK, topP, minP, temperature, u };
}

/**
 * How a sequence's generated token number `index`, from 0 on, is drawn; `undefined` where that takes
 * what is known only later: entropies, or which tokens came before.
 */
export function plainDraw(sequence: Sequence, index: number): Draw | undefined {
  const { adjuster, temperature, request: { sampling } } = sequence;
  if (temperature !== undefined || index < adjuster.neutralFrom) return undefined;
  return drawOf(sampling, uniform(sampling.seed, index));
}
