/** Arrivals at a given load: Poisson, or in bursts with gamma-distributed gaps. */
import { randomNumbers } from "../../support/random.ts";
import type { Arrival } from "./simulate.ts";
import type { Machine } from "./trace_backend.ts";
import type { Trace } from "./traces.ts";

export interface Demand {
  readonly count: number;
  /** Work that arrives over work that can be done with all slots busy. */
  readonly load: number;
  /** Shape of the gamma distribution of the gaps: 1 is Poisson, below it bursts. */
  readonly shape: number;
  /** One of these for each request, at random. */
  readonly maxTokens: readonly number[];
}

/** Requests drawn from recorded generations; the same for the same seed. */
export function arrivalsOf(
  traces: readonly Trace[],
  demand: Demand,
  machine: Machine,
  slots: number,
  seed: number,
): Arrival[] {
  const random = randomNumbers(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const asked = Array.from({ length: demand.count }, () => ({
    trace: pick(traces),
    maxTokens: pick(demand.maxTokens),
  }));
  return spread(asked, demand, machine, slots, random);
}

/** Gives requests times of arrival that make up the load. */
export function spread<T extends Omit<Arrival, "at">>(
  asked: readonly T[],
  { load, shape }: Pick<Demand, "load" | "shape">,
  machine: Machine,
  slots: number,
  random: () => number,
): (T & Arrival)[] {
  const token = machine.step / slots + machine.decode;
  const work = asked.reduce(
    (sum, { trace, maxTokens }) =>
      sum + trace.promptTokens * machine.prefill + Math.min(trace.length, maxTokens) * token,
    0,
  );
  const gaps = gapsOf(asked.length, work / asked.length / load, shape, random);
  let at = 0;
  return asked.map((request, i) => ({ at: at += gaps[i] as number, ...request }));
}

/** Gamma-distributed times between arrivals, with this mean; shape 1 is Poisson. */
export function gapsOf(
  count: number,
  mean: number,
  shape: number,
  random: () => number,
): number[] {
  return Array.from({ length: count }, () => mean * gamma(shape, random) / shape);
}

/** A gamma-distributed number of scale 1 (Marsaglia and Tsang, 2000). */
function gamma(shape: number, random: () => number): number {
  if (shape < 1) return gamma(shape + 1, random) * (1 - random()) ** (1 / shape);
  const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random()) < x * x / 2 + d - d * v + d * Math.log(v)) return d * v;
  }
}
