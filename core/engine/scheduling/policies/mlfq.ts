/**
 * Skip-join multi-level feedback queue (FastServe, arXiv 2305.05920): a sequence joins the level whose
 * quantum its prompt fits, and goes down a level with each quantum used up; first come, first served
 * within a level. One that has waited `tail` long answers' time in all is back on top for good.
 */
import { tokenTime } from "../../../entropic/workload.ts";
import type { Policy } from "../policy.ts";
import { DEFAULT_TAIL, runTime } from "./patience.ts";

/** Quantum of the first level in tokens' time, the best of 8 to 128; each is twice the one before. */
const FIRST_QUANTUM = 64;
const LEVELS = 12;

export function mlfq(tail = DEFAULT_TAIL): Policy {
  return {
    name: "mlfq",
    key({ arrival, promptTokens, generatedTokens }, now, workload) {
      const token = tokenTime(workload);
      const prompt = workload.time.prefill * promptTokens;
      const served = prompt + generatedTokens * token;
      if (now - arrival - served > tail * runTime(workload)) return -1;
      return level(prompt, served, FIRST_QUANTUM * token);
    },
    refreshSteps: 32,
  };
}

/** The level after `served` milliseconds of service, of which the prompt takes `prompt`. */
export function level(prompt: number, served: number, firstQuantum: number): number {
  let level = 0, quantum = firstQuantum;
  while (quantum < prompt && level < LEVELS - 1) {
    quantum *= 2;
    level++;
  }
  let left = served - quantum;
  while (left >= 0 && level < LEVELS - 1) {
    quantum *= 2;
    level++;
    left -= quantum;
  }
  return level;
}
