/**
 * How long a step takes: a + b * decodes + c * prompt tokens, fitted to the measured steps by least
 * squares that forget. It makes a policy's prices those of the machine at hand: on a CPU a prompt
 * token costs about as much as a decoded one, on a GPU next to nothing.
 */

/** Milliseconds: of a step, of a sequence that decodes in it, of a prompt token in it. */
export interface StepTime {
  readonly step: number;
  readonly decode: number;
  readonly prefill: number;
}

/** The fit, and the discounted sums that it follows from. */
export interface StepTimeFit extends StepTime {
  /** Of the features' products: [1·1, 1·d, 1·p, d·d, d·p, p·p]. */
  readonly products: readonly number[];
  /** Of the features times the milliseconds: [1, d, p]. */
  readonly moments: readonly number[];
}

/** Discount a step. */
const DISCOUNT = 0.995;
/** Weight of the first guess, in steps: small, but it decides what the steps leave open. */
const PRIOR = 0.01;
const GUESS: StepTime = { step: 5, decode: 5, prefill: 5 };
/** A price below this, in milliseconds, is taken for noise. */
const LEAST = 1e-3;

export const FIRST_FIT: StepTimeFit = {
  ...GUESS,
  products: [0, 0, 0, 0, 0, 0],
  moments: [0, 0, 0],
};

/** @param discount What the steps so far count for, beside this one; 1 forgets nothing. */
export function observeStepTime(
  fit: StepTimeFit,
  step: {
    readonly decodes: number;
    readonly prefillTokens: number;
    readonly milliseconds: number;
  },
  discount = DISCOUNT,
): StepTimeFit {
  const { decodes: d, prefillTokens: p, milliseconds } = step;
  const features = [1, d, p];
  const seen = [1, d, p, d * d, d * p, p * p];
  const products = fit.products.map((sum, i) => discount * sum + (seen[i] as number));
  const moments = fit.moments.map((sum, i) =>
    discount * sum + (features[i] as number) * milliseconds
  );
  return { ...solve(products, moments), products, moments };
}

/** Least squares around the guess; a price that comes out negative is held at the least. */
function solve(products: readonly number[], moments: readonly number[]): StepTime {
  const [n, sd, sp, dd, dp, pp] = products as [number, number, number, number, number, number];
  const matrix = [[n, sd, sp], [sd, dd, dp], [sp, dp, pp]];
  const guess = [GUESS.step, GUESS.decode, GUESS.prefill];
  const prices: number[] = [...guess];
  const free = [0, 1, 2];
  for (;;) {
    const held = [0, 1, 2].filter((i) => !free.includes(i));
    const rows = free.map((i) => [
      ...free.map((j) => (matrix[i]?.[j] ?? 0) + (i === j ? PRIOR : 0)),
      (moments[i] ?? 0) + PRIOR * (guess[i] ?? 0) -
      held.reduce((sum, j) => sum + (matrix[i]?.[j] ?? 0) * LEAST, 0),
    ]);
    const solution = eliminate(rows);
    free.forEach((index, i) => prices[index] = solution[i] as number);
    const worst = free.filter((index) => (prices[index] as number) < LEAST);
    if (worst.length === 0) break;
    for (const index of worst) {
      prices[index] = LEAST;
      free.splice(free.indexOf(index), 1);
    }
  }
  const [step, decode, prefill] = prices as [number, number, number];
  return { step, decode, prefill };
}

/** Solves a symmetric positive definite system; rows carry their right side last. */
function eliminate(rows: number[][]): number[] {
  const size = rows.length;
  const at = (i: number, j: number) => rows[i]?.[j] as number;
  for (let k = 0; k < size; k++) {
    for (let i = k + 1; i < size; i++) {
      const factor = at(i, k) / at(k, k);
      rows[i] = (rows[i] as number[]).map((value, j) => value - factor * at(k, j));
    }
  }
  const solution: number[] = [];
  for (let k = size - 1; k >= 0; k--) {
    let value = at(k, size);
    for (let j = k + 1; j < size; j++) value -= at(k, j) * (solution[j] as number);
    solution[k] = value / at(k, k);
  }
  return solution;
}
