import { assertEquals, assertStringIncludes } from "@std/assert";
import { fcfs } from "../../../core/engine/scheduling/policy.ts";
import { promptOf, request } from "../../support/engine_runs.ts";
import { ScriptedBackend } from "../../support/scripted_backend.ts";
import type { PolicyName } from "./policies.ts";
import { type Evidence, qualityOf } from "./quality.ts";
import { storePrefix } from "./stored_prefix.ts";
import { runTrial } from "./trial.ts";

const DOCUMENT = Uint32Array.from(promptOf(32));

/** A backend, and what it answers at a temperature; `shift` then moves every entropy. */
async function evidenceOf(temperature: number, shift = 0) {
  const backend = new ScriptedBackend();
  const prefix = await storePrefix(backend, DOCUMENT);
  const jobs = [1, 2].map((first) => ({
    at: 0,
    request: request(Uint32Array.of(...DOCUMENT, first), { temperature, ignoreEos: true }),
  }));
  const trial = await runTrial(backend, prefix, jobs, fcfs, 2);
  const answers = trial.answers.map((answer) => ({
    ...answer,
    tokens: answer.tokens.map((token) => ({ ...token, entropy: token.entropy + shift })),
  }));
  const evidence: Evidence = { trials: [{ ...trial, answers }], jobs: [jobs] };
  return { backend, prefix, evidence };
}

async function judge(policy: PolicyName, temperature: number, shift?: number) {
  const { evidence: baseline } = await evidenceOf(0.7);
  const { backend, prefix, evidence } = await evidenceOf(temperature, shift);
  const compare = () => Promise.resolve({ pplRatio: 1.01, kl: 0.02, top1: 0.9 });
  return await qualityOf(policy, evidence, baseline, backend, prefix, compare);
}

Deno.test("qualityOf calls a policy lossless that gives the baseline's tokens", async () => {
  const { basis, ...figures } = await judge("scheduling", 0.7);
  assertEquals(figures, { ppl_ratio: 1, kl: 0, top1: 1 });
  assertStringIncludes(basis, "every token of every answer is the baseline's");
});

Deno.test("qualityOf runs other texts again to see whether the model is the same", async () => {
  const { basis, ...figures } = await judge("sampling", 2);
  assertEquals(figures, { ppl_ratio: 1, kl: 0, top1: 1 });
  assertStringIncludes(basis, "the same entropies to the bit");
});

Deno.test("qualityOf measures attention whose distributions are not the dense ones", async () => {
  const { basis, ...figures } = await judge("all", 2, 1e-9);
  assertEquals(figures, { ppl_ratio: 1.01, kl: 0.02, top1: 0.9 });
  assertStringIncludes(basis, "teacher-forced");
});

Deno.test("qualityOf claims nothing of distributions that differ without pruning", async () => {
  const { basis: _, ...figures } = await judge("sampling", 2, 1e-9);
  assertEquals(figures, { ppl_ratio: null, kl: null, top1: null });
});
