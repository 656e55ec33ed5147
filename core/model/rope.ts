/**
 * Frequencies of the rotary position embedding (arXiv 2104.09864), with linear scaling
 * (arXiv 2306.15595), YaRN (arXiv 2309.00071) and the per-frequency factors of Llama 3 files.
 */
import type { RopeConfig } from "./config.ts";

export interface RopeFrequencies {
  /** Radians a position, of each rotated pair of dimensions, shape [dimensions / 2]. */
  readonly inverse: Float64Array<ArrayBuffer>;
  /** Factor on the rotated queries and on the rotated keys: YaRN's temperature, else 1. */
  readonly scale: number;
}

/**
 * @param factors What each frequency is divided by: the content of `rope_freqs.weight`, shape
 * [dimensions / 2]. Nothing where left out.
 * @throws {RangeError} `factors` has another length, or a factor that is not above 0.
 */
export function ropeFrequencies(config: RopeConfig, factors?: ArrayLike<number>): RopeFrequencies {
  const { base, dimensions, scaling } = config;
  const pairs = dimensions / 2;
  if (factors !== undefined) checkFactors(factors, pairs);
  const stretch = stretching(config);
  const inverse = Float64Array.from(
    { length: pairs },
    (_, pair) => base ** (-2 * pair / dimensions) / (factors?.[pair] ?? 1) * stretch(pair),
  );
  // YaRN, equation 22: the attention temperature, moved into queries and keys.
  const scale = scaling.type === "yarn"
    ? scaling.attentionFactor * (1 + 0.1 * Math.log(scaling.factor))
    : 1;
  return { inverse, scale };
}

/** By what scaling multiplies the frequency of a pair. */
function stretching(config: RopeConfig): (pair: number) => number {
  const { scaling } = config;
  switch (scaling.type) {
    case "none":
      return () => 1;
    case "linear":
      return () => 1 / scaling.factor;
    case "yarn": {
      // Pairs that turn more than betaFast times in the original context stay as they are, those
      // that turn less than betaSlow times are interpolated, those between are blended.
      const last = config.dimensions - 1;
      const low = Math.max(0, Math.floor(pairOfTurns(config, scaling.betaFast)));
      const high = Math.min(last, Math.ceil(pairOfTurns(config, scaling.betaSlow)));
      return (pair) => {
        const ramp = (pair - low) / Math.max(0.001, high - low);
        const interpolated = Math.min(1, Math.max(0, ramp));
        return interpolated / scaling.factor + (1 - interpolated);
      };
    }
  }
}

/** Which pair turns so many times over the original context; fractional. */
function pairOfTurns({ base, dimensions, scaling }: RopeConfig, turns: number): number {
  const context = scaling.type === "yarn" ? scaling.originalContext : 0;
  return dimensions * Math.log(context / (turns * 2 * Math.PI)) / (2 * Math.log(base));
}

function checkFactors(factors: ArrayLike<number>, pairs: number): void {
  if (factors.length !== pairs) {
    throw new RangeError(
      `Cannot scale RoPE frequencies: expected ${pairs} factors, current count is ${factors.length}`,
    );
  }
  for (let i = 0; i < pairs; i++) {
    const factor = factors[i] ?? NaN;
    if (!(factor > 0 && factor < Infinity)) {
      throw new RangeError(
        `Cannot scale RoPE frequencies: factor ${i} must be finite and above 0, ` +
          `current value is ${factor}`,
      );
    }
  }
}
