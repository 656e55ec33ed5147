import { assert, assertEquals } from "@std/assert";
import { createPolicy } from "../../../core/engine/scheduling/policies/mod.ts";
import { promptOf, request } from "../../support/engine_runs.ts";
import { ScriptedBackend } from "../../support/scripted_backend.ts";
import { figuresOf } from "./figures.ts";
import { isDenseModel } from "./replay.ts";
import { storePrefix } from "./stored_prefix.ts";
import { runTrial } from "./trial.ts";

const DOCUMENT = Uint32Array.from(promptOf(64));

async function trialOf(policy: "fcfs" | "entropic", gap: number) {
  const backend = new ScriptedBackend();
  const prefix = await storePrefix(backend, DOCUMENT);
  const jobs = [3, 5, 8, 4].map((maxTokens, i) => ({
    at: i * gap,
    request: request(Uint32Array.of(...DOCUMENT, 1 + i, 2, 3), {
      maxTokens,
      ignoreEos: true,
      temperature: 0.7,
      seed: BigInt(i),
    }),
  }));
  const trial = await runTrial(backend, prefix, jobs, createPolicy(policy), 2);
  return { trial, jobs, backend, prefix };
}

Deno.test("runTrial answers every job, in order, from the stored document", async () => {
  const { trial } = await trialOf("fcfs", 0);
  assertEquals(trial.answers.map(({ tokens }) => tokens.length), [3, 5, 8, 4]);
  assertEquals(trial.answers.map(({ end }) => end.usage.cachedTokens), [64, 64, 64, 64]);
  for (const { times } of trial.answers) {
    assert(times.every((time, i) => time >= (times[i - 1] ?? 0) && time <= trial.duration));
  }
});

Deno.test("runTrial gives the same tokens under another policy, at once or one by one", async () => {
  const texts = async (policy: "fcfs" | "entropic", gap: number) =>
    (await trialOf(policy, gap)).trial.answers.map(({ tokens }) =>
      tokens.map(({ token }) => token)
    );
  const expected = await texts("fcfs", 0);
  assertEquals(await texts("entropic", 0), expected);
  assertEquals(await texts("fcfs", 1e6), expected);
});

Deno.test("runTrial skips the time between arrivals but counts it", async () => {
  const { trial } = await trialOf("fcfs", 1e6);
  assert(trial.duration >= 3e6 && trial.wallSeconds < 60);
  const { latency, throughput, tokens } = figuresOf(trial);
  assert(latency < 1e3, "a request's latency begins when it comes");
  assertEquals(throughput, tokens / trial.duration * 1000);
});

Deno.test("isDenseModel sees whether an answer came from the dense model", async () => {
  const { trial, jobs, backend, prefix } = await trialOf("entropic", 0);
  const [answer] = trial.answers, prompt = jobs[0]?.request.prompt ?? [];
  assert(answer !== undefined);
  assert(await isDenseModel(backend, prefix, prompt, answer));
  const [first, second] = answer.tokens;
  assert(first !== undefined && second !== undefined);
  const tokens = [first, { ...second, entropy: second.entropy + 1e-12 }];
  assert(!await isDenseModel(backend, prefix, prompt, { ...answer, tokens }));
});
