/**
 * The workloads of the ablation (section "how gains are measured"): what is asked, when, and about which
 * document. The same seed gives the same requests; every policy gets them alike.
 */
import { randomNumbers } from "../../support/random.ts";
import { gapsOf } from "../scheduling/arrivals.ts";
import type { Asked } from "./policies.ts";

export const WORKLOADS = ["short-chat", "long-context", "code", "mixed"] as const;
export type WorkloadName = typeof WORKLOADS[number];

/** How much of it there is. */
export interface Size {
  /** Tokens that lie in the prefix cache before the questions: the document, and what precedes it. */
  readonly document: number;
  /** Requests in a run. */
  readonly requests: number;
  /** Sequences in a step. */
  readonly slots: number;
  /** One of these for each request. */
  readonly maxTokens: readonly number[];
  /** Where requests come one by one: work that comes over work that can be done. */
  readonly load?: number;
  /** Whether answers go on past the end token, so that every policy does the same work. */
  readonly fixedLength: boolean;
}

/** A request and when it comes: its share of the time that all would take if they came at once. */
export interface Arrival {
  readonly at: number;
  readonly asked: Asked;
}

/** What the prompts of a workload are made of. */
export interface Prompts {
  /** Shape [Size.document]. */
  readonly document: Uint32Array;
  /** What follows the document, for each question. */
  readonly about: readonly Uint32Array[];
  /** Prompts without the document. */
  readonly alone: readonly Uint32Array[];
}

/** Gaps between arrivals are gamma-distributed with this shape: bursts. */
const BURSTS = 0.5;

/** @returns The requests of a run, in order of time. */
export function arrivalsOf(prompts: Prompts, size: Size, seed: number): Arrival[] {
  const random = randomNumbers(seed);
  const { requests, maxTokens, load } = size;
  const times = load === undefined ? [] : gapsOf(requests, 1 / requests / load, BURSTS, random);
  const about = shuffled(prompts.about, random), alone = shuffled(prompts.alone, random);
  let at = 0;
  return Array.from({ length: requests }, (_, i) => {
    const asked = {
      prompt: promptOf(prompts.document, about, alone, i),
      maxTokens: maxTokens[Math.floor(random() * maxTokens.length)] as number,
      ignoreEos: size.fixedLength,
      seed: BigInt(1000 * seed + i),
    };
    return { at: at += times[i] ?? 0, asked };
  });
}

/** Where there are both kinds of prompt they take turns. */
function promptOf(
  document: Uint32Array,
  about: readonly Uint32Array[],
  alone: readonly Uint32Array[],
  i: number,
): Uint32Array {
  if (about.length === 0) return alone[i % alone.length] as Uint32Array;
  const turn = alone.length > 0 ? i >> 1 : i;
  if (alone.length > 0 && i % 2 === 1) return alone[turn % alone.length] as Uint32Array;
  return Uint32Array.of(...document, ...about[turn % about.length] as Uint32Array);
}

/** A permutation, by Fisher and Yates. */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = [...items];
  for (let end = order.length - 1; end > 0; end--) {
    const from = Math.floor(random() * (end + 1));
    [order[end], order[from]] = [order[from] as T, order[end] as T];
  }
  return order;
}
