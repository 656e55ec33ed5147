/**
 * Entropy and varentropy of a row at any number of temperatures, for laws that look several times.
 * The row is read once, into narrow bins of logits that keep count, mean and variance; a look then
 * costs a hundredth of a pass over a vocabulary. Bins are expanded to second order, so their error is
 * of the third order in width / T, and none where a bin holds one token, as the likely ones do.
 */
import { type Uncertainty, uncertaintyOf } from "./entropy.ts";

/** Width of a bin in logits, and the most bins: a wider row gets wider bins. */
const WIDTH = 1 / 64;
const MOST_BINS = 4096;

/**
 * @param logits Shape [n]; -Infinity counts as nothing.
 * @returns Of softmax(logits / temperature), for temperature > 0.
 */
export function temperedRow(logits: ArrayLike<number>): (temperature: number) => Uncertainty {
  let max = -Infinity, min = Infinity;
  for (let i = 0; i < logits.length; i++) {
    const logit = logits[i] as number;
    if (logit > max) max = logit;
    if (logit < min && logit !== -Infinity) min = logit;
  }
  const bins = binsOf(logits, max, Math.max(WIDTH, (max - min) / (MOST_BINS - 1)));
  return (temperature) => {
    let z = 0, a = 0, b = 0;
    for (const { count, mean, variance } of bins) {
      const u = mean / temperature;
      const weight = count * Math.exp(u);
      // Half the variance of x / T times the second derivatives of e^x, x e^x and x^2 e^x.
      const spread = variance / (2 * temperature * temperature);
      z += weight * (1 + spread);
      a += weight * (u + spread * (u + 2));
      b += weight * (u * u + spread * (u * u + 4 * u + 2));
    }
    return uncertaintyOf({ max: max / temperature, z, a, b });
  };
}

/** Logits relative to the largest. */
interface Bin {
  readonly count: number;
  readonly mean: number;
  readonly variance: number;
}

/** The bins that hold anything. */
function binsOf(logits: ArrayLike<number>, max: number, width: number): Bin[] {
  const counts = new Float64Array(MOST_BINS);
  const sums = new Float64Array(MOST_BINS), squares = new Float64Array(MOST_BINS);
  for (let i = 0; i < logits.length; i++) {
    const x = (logits[i] as number) - max;
    if (x === -Infinity) continue;
    const bin = Math.floor(-x / width);
    // Relative to the bin's near edge, lest the variance drown in rounding.
    const offset = x + bin * width;
    counts[bin] = (counts[bin] as number) + 1;
    sums[bin] = (sums[bin] as number) + offset;
    squares[bin] = (squares[bin] as number) + offset * offset;
  }
  const bins: Bin[] = [];
  for (let bin = 0; bin < MOST_BINS; bin++) {
    const count = counts[bin] as number;
    if (count === 0) continue;
    const offset = (sums[bin] as number) / count;
    const variance = Math.max(0, (squares[bin] as number) / count - offset * offset);
    bins.push({ count, mean: offset - bin * width, variance });
  }
  return bins;
}
