/** What a row's text is worth beside the dense model's: measured, or shown to be the same. */
import type { Backend } from "../../../core/engine/backend.ts";
import type { Divergence } from "../../../core/host/calibrate/divergence.ts";
import { has, type PolicyName } from "./policies.ts";
import { isDenseModel } from "./replay.ts";
import type { StoredPrefix } from "./stored_prefix.ts";
import type { Answer, Job, Trial } from "./trial.ts";

/** Against dense attention, with the same tokens before (teacher-forced). */
export interface Quality {
  /** Perplexity over that of the dense model; null where it was not measured. */
  readonly ppl_ratio: number | null;
  /** Mean KL divergence from the dense model's distribution, in nats. */
  readonly kl: number | null;
  /** Share of positions whose most likely token is the dense model's. */
  readonly top1: number | null;
  readonly basis: string;
}

/** How the attention layer's plan compares with dense attention on the workload's document. */
export type CompareWithDense = () => Promise<Pick<Divergence, "pplRatio" | "kl" | "top1">>;

/** A policy's trials, and the jobs that each served. */
export interface Evidence {
  readonly trials: readonly Trial[];
  readonly jobs: readonly (readonly Job[])[];
}

const SAME = { ppl_ratio: 1, kl: 0, top1: 1 };
const UNKNOWN = { ppl_ratio: null, kl: null, top1: null };

/** @param compare Missing where nothing is pruned. */
export async function qualityOf(
  policy: PolicyName,
  evidence: Evidence,
  baseline: Evidence,
  backend: Backend,
  prefix: StoredPrefix,
  compare: CompareWithDense | undefined,
): Promise<Quality> {
  if (policy === "baseline") return { ...SAME, basis: "what the others are compared with" };
  if (sameTexts(evidence.trials, baseline.trials)) {
    return { ...SAME, basis: "every token of every answer is the baseline's" };
  }
  const { prompt, answer } = longest(evidence);
  if (await isDenseModel(backend, prefix, prompt, answer)) {
    const basis = "other texts, but each token drawn from the dense model's own distribution: " +
      "an answer run again densely gives the same entropies to the bit";
    return { ...SAME, basis };
  }
  if (!has(policy, "attention") || compare === undefined) {
    return { ...UNKNOWN, basis: "texts differ from the baseline's, and so do the distributions" };
  }
  const { pplRatio, kl, top1 } = await compare();
  const basis = "teacher-forced on the last positions of the workload's document";
  return { ppl_ratio: pplRatio, kl, top1, basis };
}

/** The first trial's answer to the longest prompt: where pruning does most. */
function longest({ trials: [trial], jobs: [jobs] }: Evidence) {
  let found: { readonly prompt: ArrayLike<number>; readonly answer: Answer } | undefined;
  for (const [i, answer] of trial?.answers.entries() ?? []) {
    const prompt = jobs?.[i]?.request.prompt ?? [];
    if (prompt.length > (found?.prompt.length ?? 0)) found = { prompt, answer };
  }
  if (found === undefined) throw new RangeError("Cannot judge a policy of which nothing ran");
  return found;
}

function sameTexts(a: readonly Trial[], b: readonly Trial[]): boolean {
  const texts = (trials: readonly Trial[]) =>
    JSON.stringify(
      trials.map(({ answers }) => answers.map(({ tokens }) => tokens.map(({ token }) => token))),
    );
  return texts(a) === texts(b);
}
