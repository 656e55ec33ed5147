/**
 * Micro: laws that steer the sampling temperature by the entropy of the distribution it makes.
 *
 * With x = log T and p_T = softmax(z / T), dH(p_T)/dx = V, the varentropy of p_T. The law as printed
 * (arXiv 2603.03310), x <- x + eta (H - H*), therefore has the slope 1 + eta V > 1: H* repels, and the
 * clip holds T on a rail. It is here as `seed`, beside laws that contract:
 *
 * | law | next x | slope |
 * |---|---|---|
 * | `seed` | x + eta (H_T - H*) | 1 + eta V |
 * | `seed-leaky` | (1 - leak) x + leak x_0 + eta (H - H*), H of the model's own distribution | 1 - leak |
 * | `stabilized` | x + eta_t (H* - H_T), eta_t = min(eta, kappa / (V + epsilon)) | 1 - eta_t V |
 * | `same-step` | where H(p_T) = H* in this very step | 0 |
 */
import type { Uncertainty } from "./entropy.ts";

export const TEMPERATURE_LAWS = ["seed", "seed-leaky", "stabilized", "same-step"] as const;
export type TemperatureLaw = typeof TEMPERATURE_LAWS[number];

export interface TemperatureControl {
  readonly law: TemperatureLaw;
  /** H*, the entropy to hold, in nats, >= 0. */
  readonly target: number;
  /** Change of log T for each nat of error; > 0. */
  readonly eta: number;
  /** `seed-leaky`: share of the way back to the first temperature in each step, in (0, 1]. */
  readonly leak: number;
  /** `stabilized`: bound of eta_t V, in (0, 1): below 1 the approach is monotone. */
  readonly kappa: number;
  /** T_min and T_max, 0 < min <= max. */
  readonly min: number;
  readonly max: number;
}

/**
 * Fills in the defaults: loops that settle within some 20 tokens of SmolLM2-135M. `seed-leaky` acts on
 * the model's own entropy, which hot text raises in its turn: at eta 0.05 that carried T to its rail.
 */
export function temperatureControl(
  given: Partial<TemperatureControl> & { readonly law: TemperatureLaw },
): TemperatureControl {
  const eta = given.law === "seed-leaky" ? 0.01 : 0.05;
  return { target: 1, eta, leak: 0.1, kappa: 0.5, min: 0.1, max: 2, ...given };
}

/** Below this varentropy, in nats squared, the temperature has no hold on the entropy. */
const EPSILON = 1e-6;

/** Nats by which `same-step` may miss its target. */
const TOLERANCE = 1e-3;

/** Sums over a sequence's steps, to tell how its control went. */
export interface TemperatureSums {
  readonly steps: number;
  /** Steps at T_min or T_max. */
  readonly onRail: number;
  readonly temperature: number;
  /** H(p_T) and its square. */
  readonly entropy: number;
  readonly entropySquared: number;
  readonly varentropy: number;
  /** eta_t V: what the slope of the law adds to, or takes from, 1. */
  readonly gain: number;
}

export interface TemperatureState {
  /** log T of the next step, and x_0. */
  readonly logT: number;
  readonly start: number;
  readonly sums: TemperatureSums;
}

const NO_SUMS: TemperatureSums = {
  steps: 0,
  onRail: 0,
  temperature: 0,
  entropy: 0,
  entropySquared: 0,
  varentropy: 0,
  gain: 0,
};

/** @param temperature T_0; clipped to the control's range. */
export function startTemperature(
  control: TemperatureControl,
  temperature: number,
): TemperatureState {
  const logT = clip(control, Math.log(temperature));
  return { logT, start: logT, sums: NO_SUMS };
}

/** H(p_T) and V(p_T) at some log T. */
type Look = { readonly logT: number } & Pick<Uncertainty, "entropy" | "varentropy">;

/**
 * One step: the temperature to draw with, and the state of the next.
 *
 * @param raw Of the model's own distribution.
 * @param at Of p_T, exactly, for any temperature T.
 */
export function controlTemperature(
  control: TemperatureControl,
  state: TemperatureState,
  raw: Pick<Uncertainty, "entropy">,
  at: (temperature: number) => Pick<Uncertainty, "entropy" | "varentropy">,
): { readonly temperature: number; readonly state: TemperatureState } {
  const look = (logT: number): Look => ({ logT, ...at(Math.exp(logT)) });
  const now = control.law === "same-step" ? solve(control, state.logT, look) : look(state.logT);
  const { logT, entropy, varentropy } = now;
  const temperature = Math.exp(logT);
  const { step, gain } = move(control, state, raw.entropy, now);
  const { min, max } = control;
  const { sums } = state;
  return {
    temperature,
    state: {
      logT: clip(control, logT + step),
      start: state.start,
      sums: {
        steps: sums.steps + 1,
        onRail: sums.onRail + Number(logT <= Math.log(min) || logT >= Math.log(max)),
        temperature: sums.temperature + temperature,
        entropy: sums.entropy + entropy,
        entropySquared: sums.entropySquared + entropy * entropy,
        varentropy: sums.varentropy + varentropy,
        gain: sums.gain + gain,
      },
    },
  };
}

/** By how much log T moves for the next step, before the clip. */
function move(
  control: TemperatureControl,
  { start }: TemperatureState,
  rawEntropy: number,
  { logT, entropy, varentropy }: Look,
): { readonly step: number; readonly gain: number } {
  const { eta, leak, kappa, target } = control;
  switch (control.law) {
    case "seed":
      return { step: eta * (entropy - target), gain: eta * varentropy };
    case "seed-leaky":
      return { step: leak * (start - logT) + eta * (rawEntropy - target), gain: leak };
    case "stabilized": {
      // Frozen where T cannot change H: the error would only wind up. The clip freezes a rail.
      if (varentropy < EPSILON) return { step: 0, gain: 0 };
      const safe = Math.min(eta, kappa / (varentropy + EPSILON));
      return { step: safe * (target - entropy), gain: safe * varentropy };
    }
    case "same-step":
      return { step: 0, gain: 1 };
  }
}

/**
 * log T where H(p_T) is the target, or the nearer rail. H rises with log T at the rate V, and log H
 * more evenly so: Newton's steps on log H, and every third time a bisection, so that the interval
 * shrinks whatever the slope.
 */
function solve(
  control: TemperatureControl,
  guess: number,
  look: (logT: number) => Look,
): Look {
  let low = Math.log(control.min), high = Math.log(control.max), x = guess;
  let rails = 2; // not yet looked at
  for (let looks = 1;; looks++) {
    const seen = look(x);
    const { entropy, varentropy } = seen;
    const error = control.target - entropy;
    if (Math.abs(error) <= TOLERANCE) return seen;
    if (error > 0) low = x;
    else high = x;
    if (high - low < 1e-9) return seen;
    const newton = x + Math.log(control.target / entropy) * entropy / varentropy;
    if (newton > low && newton < high && looks % 3 !== 0) x = newton;
    else if (rails === 0 || looks % 3 === 0) x = (low + high) / 2;
    else {
      rails--;
      x = error > 0 ? high : low;
    }
  }
}

function clip({ min, max }: TemperatureControl, logT: number): number {
  return Math.min(Math.log(max), Math.max(Math.log(min), logT));
}
