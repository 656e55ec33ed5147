/** Chooses the share of the attention to keep, for each context length, by measured divergence. */
import type { AttentionPlan, Backend } from "../../engine/backend.ts";
import type { MassByLength } from "../../entropic/pruning.ts";
import { compareWithDense } from "./compare.ts";
import { type Comparison, divergenceOf } from "./divergence.ts";

/** Shares that are tried. */
export const MASSES = [0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98];
/** Tokens scored in each text at each length. */
const POSITIONS = 256;
/** One-sided: the bound holds for the mean's upper limit of 95 %. */
const Z = 1.645;
/** Most that perplexity may grow by. */
const PPL_RATIO = 1.01;

export interface MassOptions {
  /** Most nats of divergence from dense, in the mean. */
  readonly bound: number;
  /** Context lengths, ascending; those that no text reaches are left out. */
  readonly lengths: readonly number[];
  readonly minBlocks: number;
  readonly positions?: number;
  /** Told what was found. */
  readonly log?: (line: string) => void;
}

/**
 * The smallest share that keeps to the bound, and so do all larger ones that are tried; 1 where none
 * does. The backend's sketch is set.
 *
 * @param texts Token ids of each.
 */
export async function chooseMass(
  backend: Backend,
  texts: readonly Uint32Array[],
  { bound, lengths, minBlocks, positions = POSITIONS, log }: MassOptions,
): Promise<MassByLength> {
  const plans = MASSES.map((mass): AttentionPlan => ({ kind: "mass", mass, minBlocks }));
  const found = lengths.map(() => MASSES.map((): Comparison[] => []));
  for (const text of texts) {
    const within = lengths.filter((length) => length < text.length);
    const results = await compareWithDense(backend, text, within, positions, plans);
    for (const [i, comparisons] of results.entries()) {
      for (const [j, comparison] of comparisons.entries()) found[i]?.[j]?.push(comparison);
    }
  }
  return lengths.flatMap((length, i) => {
    const candidates = found[i] ?? [];
    if (candidates[0]?.length === 0) {
      log?.(`${length} tokens: no text is that long`);
      return [];
    }
    const failed = candidates.findLastIndex((comparisons) => !keepsTo(bound, comparisons));
    const mass = MASSES[failed + 1] ?? 1;
    log?.(`${length} tokens: mass ${mass}${describe(candidates[failed + 1])}`);
    return [{ length, mass }];
  });
}

/** Whether the divergence stays below the bound, with a margin for so few positions. */
function keepsTo(bound: number, comparisons: readonly Comparison[]): boolean {
  const values = comparisons.flatMap(({ kl }) => kl);
  const { kl: mean, pplRatio } = divergenceOf(comparisons);
  const variance = values.reduce((sum, kl) => sum + (kl - mean) ** 2, 0) / (values.length - 1);
  return mean + Z * Math.sqrt(variance / values.length) <= bound && pplRatio <= PPL_RATIO;
}

function describe(comparisons: readonly Comparison[] | undefined): string {
  if (comparisons === undefined) return ", for no smaller share keeps to the bound";
  const { kl, pplRatio, bytesShare, macsShare } = divergenceOf(comparisons);
  return `, KL ${kl.toFixed(4)}, perplexity x${pplRatio.toFixed(4)}, ` +
    `bytes ${bytesShare.toFixed(3)}, multiply-adds ${macsShare.toFixed(3)}`;
}
