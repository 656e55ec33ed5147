/**
 * Native llama.cpp's greedy text on five prompts, 48 tokens each, with the best 20 candidates of each
 * step, and how far a path may leave it.
 */
import { assert, assertLess } from "@std/assert";
import GREEDY from "../data/greedy.json" with { type: "json" };

/** A token's id, llama.cpp's log-probability, and that of exact arithmetic. */
export type Candidate = readonly [id: number, native: number, exact: number];

export interface GreedyRun {
  readonly prompt: string;
  readonly promptTokens: readonly number[];
  readonly tokens: readonly number[];
  /** Per step, llama.cpp's best 20. */
  readonly steps: readonly (readonly Candidate[])[];
}

export const GREEDY_RUNS = GREEDY as unknown as readonly GreedyRun[];

/**
 * Who draws another token than llama.cpp may do so only where the two are nearly tied, to llama.cpp or
 * in exact arithmetic; where exact arithmetic prefers the other, the departure is llama.cpp's own.
 *
 * @param tie In nats.
 */
export function assertTied(candidates: readonly Candidate[], drawn: number, tie = 0.1): void {
  const [first] = candidates, other = candidates.find(([id]) => id === drawn);
  assert(first !== undefined && other !== undefined, `${drawn} is none of the best 20`);
  const gap = Math.min(first[1] - other[1], first[2] - other[2]);
  assertLess(gap, tie, `drawn is ${drawn}, llama.cpp draws ${first[0]}`);
}

/**
 * By how many nats exact arithmetic prefers `drawn` to what a path has at `step`. NaN where the path has
 * left llama.cpp's before, or one of the two is none of llama.cpp's best 20: nobody computed it there.
 */
export function exactGain(
  { tokens, steps }: GreedyRun,
  path: readonly { readonly id: number }[],
  step: number,
  drawn: number,
): number {
  if (path.slice(0, step).some(({ id }, i) => id !== tokens[i])) return NaN;
  const exact = (id: number | undefined) =>
    steps[step]?.find(([candidate]) => candidate === id)?.[2] ?? NaN;
  return exact(drawn) - exact(path[step]?.id);
}
