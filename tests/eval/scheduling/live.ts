/**
 * Compares policies on the real model: real prompts, kernels and text, arrivals by processor time.
 * `deno run -A tests/eval/scheduling/live.ts [--seeds N] [--count N] [--load X] [--json]`
 */
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import { createPolicy, type PolicyName } from "../../../core/engine/policies/mod.ts";
import { openFiles } from "../../../core/host/store/file_source.ts";
import { encodePrompt } from "../../../core/model/chat_template.ts";
import { openModel } from "../../../core/model/gguf/open_model.ts";
import { loadModel } from "../../../mod.ts";
import { createWasmBackend } from "../../../wasm/backend.ts";
import { randomNumbers } from "../../support/random.ts";
import { REAL_MODEL } from "../../support/real_model.ts";
import { pairedRatio } from "../bootstrap.ts";
import { gapsOf } from "./arrivals.ts";
import { drive, type Job, type Outcome } from "./drive.ts";
import { INSTRUCTIONS } from "./instructions.ts";
import { timedBackend } from "./timed_backend.ts";

const POLICIES: readonly PolicyName[] = ["fcfs", "mlfq", "entropic"];
const LIMITS = [32, 64, 128, 256, 384];
const SLOTS = 8;
const MEMORY = { plentiful: 1024, scarce: 80 };
/** Bursty: gamma-distributed gaps of this shape. */
const SHAPE = 0.5;

const COMMAND = {
  usage: "live.ts",
  about: "Compares scheduling policies on the real model.",
  options: {
    seeds: { value: "N", help: "runs of each policy (default 3)" },
    count: { value: "N", help: "requests in a run (default 60)" },
    load: { value: "X", help: "work that comes over work that can be done (default 1)" },
    json: { help: "print one JSON document" },
  },
  operands: [0, 0],
} as const satisfies Command<string>;

if (REAL_MODEL === undefined) throw new Error("Cannot run: the default model is not here");
const { files } = await openModel(await openFiles([REAL_MODEL]));

async function run(jobs: readonly Job[], kvBlocks: number, name: PolicyName): Promise<Outcome[]> {
  const real = await createWasmBackend({ files, kvBlocks, contextLength: 1024 });
  const open = (clock: { now: number }, onStep: () => void) => timedBackend(real, clock, onStep);
  return await drive(jobs, open, createPolicy(name), SLOTS);
}

/** Prompts of the real model's template, `count` of them, all at once. */
async function requestsOf(count: number, seed: number): Promise<Job[]> {
  const { engine, tokenizer, template } = await loadModel({ model: REAL_MODEL ?? "", context: 64 });
  await engine.dispose();
  if (template === undefined) throw new TypeError("Cannot run: there is no chat template");
  const random = randomNumbers(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  return Array.from({ length: count }, (_, i) => {
    const messages = [{ role: "user", content: pick(INSTRUCTIONS) }];
    const prompt = encodePrompt(
      tokenizer,
      template.render(messages, { addGenerationPrompt: true }),
    );
    const sampling = { temperature: 0.7, seed: BigInt(1000 * seed + i) };
    return { at: 0, request: { prompt, sampling, maxTokens: pick(LIMITS) } };
  });
}

await runCommand(COMMAND, async (given) => {
  const seeds = given.integer("seeds", 1, 100) ?? 3;
  const count = given.integer("count", 1, 10_000) ?? 60;
  const load = given.number("load", 0.01, 100) ?? 1;
  const results: object[] = [];
  for (const [memory, kvBlocks] of Object.entries(MEMORY)) {
    const runs = new Map<string, Outcome[][]>(POLICIES.map((name) => [name, []]));
    for (let seed = 1; seed <= seeds; seed++) {
      const jobs = await requestsOf(count, seed);
      // Served all at once, they take as long as they must.
      const least = Math.max(...(await run(jobs, 1024, "fcfs")).map(({ latency }) => latency));
      const gaps = gapsOf(count, least / count / load, SHAPE, randomNumbers(seed + 1000));
      let at = 0;
      const timed = jobs.map((job, i) => ({ ...job, at: at += gaps[i] ?? 0 }));
      for (const name of POLICIES) runs.get(name)?.push(await run(timed, kvBlocks, name));
    }
    for (const [policy, outcomes] of runs) {
      const means = (of: (outcome: Outcome) => number, runs: readonly Outcome[][]) =>
        runs.map((run) => run.reduce((sum, one) => sum + of(one), 0) / run.length);
      const ratio = (of: (outcome: Outcome) => number) =>
        pairedRatio(means(of, outcomes), means(of, runs.get("fcfs") ?? []));
      const latency = ratio((one) => one.latency), firstToken = ratio((one) => one.firstToken);
      const pause = Math.max(...outcomes.flat().map(({ longestPause }) => longestPause));
      results.push({ policy, memory, load, latency, firstToken, pause });
      console.error(
        `${memory} ${policy}: mean latency ${latency.value.toFixed(2)} ` +
          `[${latency.low.toFixed(2)}, ${latency.high.toFixed(2)}], first token ` +
          `${firstToken.value.toFixed(2)} [${firstToken.low.toFixed(2)}, ` +
          `${firstToken.high.toFixed(2)}], longest pause ${(pause / 1000).toFixed(1)} s`,
      );
    }
  }
  if (given.flag("json")) console.log(JSON.stringify({ results }, null, 2));
});
