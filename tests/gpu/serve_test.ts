/**
 * `serve --backend webgpu` on the real model, over HTTP: its greedy text beside llama.cpp's, and what
 * it says of itself. Here no token is forced, so each answer counts up to where it leaves llama.cpp's.
 * Software adapters take a second a token; ENTROPIC_GPU_STEPS and ENTROPIC_GPU_PROMPTS ask for more.
 */
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import process from "node:process";
import { ADAPTER } from "../support/gpu.ts";
import { assertTied, GREEDY_RUNS, type GreedyRun } from "../support/greedy_runs.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import { startServer } from "../support/server_process.ts";

const STEPS = Number(process.env.ENTROPIC_GPU_STEPS ?? 6);
const PROMPTS = Number(process.env.ENTROPIC_GPU_PROMPTS ?? 2);

/** The ids of a greedy answer. */
async function answer(url: string, { promptTokens }: GreedyRun): Promise<number[]> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      prompt: promptTokens,
      max_tokens: STEPS,
      temperature: 0,
      ignore_eos: true,
      entropic: { trace: true },
    }),
  });
  const { choices: [{ entropic_trace: trace }] } = await response.json();
  return trace.map(({ id }: { readonly id: number }) => id);
}

Deno.test({
  name: "serve --backend webgpu leaves llama.cpp's greedy text only where two tokens are tied",
  ignore: REAL_MODEL === undefined || ADAPTER === undefined,
}, async () => {
  await using server = await startServer(["--backend", "webgpu", "--context", "256"]);
  const runs = GREEDY_RUNS.slice(0, PROMPTS);
  const answers = await Promise.all(runs.map((run) => answer(server.url, run)));
  for (const [i, { tokens, steps }] of runs.entries()) {
    const drawn = answers[i]!;
    assertEquals(drawn.length, STEPS);
    const left = drawn.findIndex((id, step) => id !== tokens[step]);
    console.log(`answer ${i} is llama.cpp's ${left < 0 ? "whole" : `for ${left} tokens`}`);
    if (left >= 0) assertTied(steps[left]!, drawn[left]!);
  }
  const health = await (await fetch(`${server.url}/health`)).json();
  assertEquals(health.backend.kind, "webgpu");
  assertStringIncludes(health.backend.variant, ADAPTER?.name ?? "");
  assertEquals(health.engine.kv_blocks_free, health.engine.kv_blocks_total);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assertMatch(metrics, /^entropic_model_info\{.*backend="webgpu".*\} 1$/m);
});
