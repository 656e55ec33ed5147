/**
 * Shortest remaining work first, with the work read off the model's own distributions: the hazard of
 * the end token says how many tokens are left, measured steps what they cost. A sequence's first token
 * counts as its last, so that everybody starts soon; waiting counts in its favour.
 */
import { expectedTokens, hazard } from "../../entropic/hazard.ts";
import { tokenTime, type Workload } from "../../entropic/workload.ts";
import type { Policy, SequenceFacts } from "../policy.ts";
import { DEFAULT_TAIL, prefillTime, runTime } from "./patience.ts";

/** Long answers' time by which one that runs is ahead of one that waits, lest they change places. */
const HYSTERESIS = 0.1;
/** Long answers' time that a point of a request's `priority` is worth, and the most points. */
const POINT = 0.1, MOST_POINTS = 10;

/**
 * key = work left + arrival / tail - what it is ahead by, in milliseconds.
 *
 * No request that arrives later than `patience` after another one passes it, whatever either does.
 */
export function entropic(tail = DEFAULT_TAIL): Policy {
  return {
    name: "entropic",
    key(facts, _now, workload) {
      const points = Math.max(-MOST_POINTS, Math.min(MOST_POINTS, facts.priority));
      const ahead = (facts.resident ? HYSTERESIS : 0) + POINT * points;
      return workLeft(facts, workload) + facts.arrival / tail - ahead * runTime(workload);
    },
    refreshSteps: 32,
  };
}

/** Milliseconds of service that a sequence is expected to need. */
function workLeft(facts: SequenceFacts, workload: Workload): number {
  const { maxTokens, generatedTokens, uncomputedTokens, evidence } = facts;
  const left = evidence.weight === 0 ? 1 : expectedTokens(
    hazard(workload.hazard, { age: generatedTokens, evidence }),
    maxTokens - generatedTokens,
  );
  return left * tokenTime(workload) + prefillTime(uncomputedTokens, workload);
}

/**
 * Milliseconds after which no newcomer passes a waiting request: its largest work and the most that
 * anybody can be ahead by, times `tail`. From then on it waits only for those who were there before.
 */
export function patience(
  longest: { readonly tokens: number; readonly prompt: number },
  workload: Workload,
  tail = DEFAULT_TAIL,
): number {
  const work = longest.tokens * tokenTime(workload) + workload.time.prefill * longest.prompt;
  return tail * (work + (HYSTERESIS + 2 * POINT * MOST_POINTS) * runTime(workload));
}
