/**
 * Shortest remaining work first, with the work read off the model's own distributions: the hazard of
 * the end token says how many tokens are left, measured steps what they cost, and where KV memory is
 * short, so does the memory that they hold. A sequence's first token counts as its last, so that
 * everybody starts soon; waiting counts in its favour, and so does a latency target that is near.
 */
import { expectedTokens, hazard } from "../../../entropic/hazard.ts";
import {
  memoryPrice,
  MOST_MEMORY_PRICE,
  stepTime,
  tokenTime,
  type Workload,
} from "../../../entropic/workload.ts";
import { BLOCK_SIZE } from "../../backend.ts";
import type { Policy, SequenceFacts } from "../policy.ts";
import { DEFAULT_TAIL, missingTokens, prefillTime, runTime } from "./patience.ts";

/** Long answers' time by which one that runs is ahead of one that waits, lest they change places. */
const HYSTERESIS = 0.1;
/** Long answers' time that a point of a request's `priority` is worth, and the most points. */
const POINT = 0.1, MOST_POINTS = 10;
/** Long answers' time by which a request is ahead that just makes its target if it runs now. */
const URGENCY = 0.5;

/**
 * key = work left + arrival / tail - what it is ahead by, in milliseconds.
 *
 * No request that arrives later than `patience` after another one passes it, whatever either does.
 */
export function entropic(tail = DEFAULT_TAIL): Policy {
  return {
    name: "entropic",
    key(facts, now, workload) {
      const left = tokensLeft(facts, workload);
      const points = Math.max(-MOST_POINTS, Math.min(MOST_POINTS, facts.priority));
      const ahead = (facts.resident ? HYSTERESIS : 0) + POINT * points +
        URGENCY * urgency(facts, left, now, workload);
      return workLeft(facts, left, workload) + facts.arrival / tail - ahead * runTime(workload);
    },
    refreshSteps: 32,
  };
}

function tokensLeft(facts: SequenceFacts, workload: Workload): number {
  const { maxTokens, generatedTokens: age, evidence } = facts;
  if (evidence.weight === 0) return 1;
  return expectedTokens(hazard(workload.hazard, { age, evidence }), maxTokens - age);
}

/** Milliseconds of service that a sequence is expected to need. */
function workLeft(facts: SequenceFacts, left: number, workload: Workload): number {
  const tokens = facts.promptTokens + facts.generatedTokens + left / 2;
  const held = tokens / BLOCK_SIZE + 0.5;
  return left * tokenTime(workload) * memoryPrice(held, workload) +
    prefillTime(missingTokens(facts), workload);
}

/**
 * How near a request is to missing its target, in [0, 1]: near 0 with time to spare, 1 where it has
 * to run from now on, and less again the surer it is to miss, for then the time is better spent on
 * others. After the apparent tardiness cost of Vepsalainen and Morton (1987).
 */
function urgency(facts: SequenceFacts, left: number, now: number, workload: Workload): number {
  if (facts.latencyTarget === undefined) return 0;
  const remaining = facts.arrival + facts.latencyTarget - now;
  if (remaining < stepTime(workload)) return 0;
  const needed = left * stepTime(workload) + prefillTime(missingTokens(facts), workload);
  return Math.exp(-Math.abs(remaining - needed) / needed);
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
  const work = longest.tokens * tokenTime(workload) * MOST_MEMORY_PRICE +
    prefillTime(longest.prompt + longest.tokens, workload);
  return tail * (work + (HYSTERESIS + 2 * POINT * MOST_POINTS + URGENCY) * runTime(workload));
}
