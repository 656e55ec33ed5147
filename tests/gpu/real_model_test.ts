/**
 * The real model on WebGPU beside exact arithmetic and llama.cpp (`tests/golden/greedy_test.ts` has
 * the data's story), with llama.cpp's tokens forced. Software adapters take a second a token, so only
 * the first steps run; ENTROPIC_GPU_STEPS and ENTROPIC_GPU_PROMPTS ask for more.
 */
import { assertEquals, assertLess } from "@std/assert";
import process from "node:process";
import { type Arithmetic, ARITHMETICS } from "../../core/engine/arithmetic.ts";
import { type Backend, DENSE } from "../../core/engine/backend.ts";
import { LocalEngine } from "../../core/engine/local_engine.ts";
import { withSources } from "../../core/host/open_engine.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { createWebGpuBackend } from "../../gpu/backend.ts";
import type { WebGpuBackend } from "../../gpu/webgpu_backend.ts";
import { request, run } from "../support/engine_runs.ts";
import { ADAPTER } from "../support/gpu.ts";
import { assertTied, GREEDY_RUNS, type GreedyRun } from "../support/greedy_runs.ts";
import { REAL_MODEL_LOCATION } from "../support/real_model_location.ts";

const STEPS = Number(process.env.ENTROPIC_GPU_STEPS ?? 6);
const PROMPTS = Number(process.env.ENTROPIC_GPU_PROMPTS ?? 1);
const ignore = REAL_MODEL_LOCATION === undefined || ADAPTER === undefined;
const RUNS = GREEDY_RUNS.slice(0, PROMPTS);
/** Steps that decode token by token; the others come in chunks. */
const DECODED = 2;

/** Our log-probabilities of each step's candidates, and the best id. */
async function forced(backend: Backend, { promptTokens, tokens, steps }: GreedyRun) {
  const all = [...promptTokens, ...tokens.slice(0, STEPS - 1)];
  const blockTable = Array.from({ length: 16 }, (_, block) => block);
  const found: { readonly best: number; readonly ours: Float32Array }[] = [];
  for (let position = 0; position < all.length;) {
    const count = Math.max(1, Math.min(64, all.length - DECODED - position));
    const part = all.slice(position, position + count);
    const input = { tokens: part, position, blockTable, attention: DENSE, output: "all" } as const;
    const { rows } = await backend.forward([input]);
    for (const [row, { logZ, topIds }] of rows.entries()) {
      const step = position + row - (promptTokens.length - 1);
      if (step < 0) continue;
      const ids = steps[step]!.map(([id]) => id);
      const logits = await backend.logitsOf(row, ids);
      found.push({ best: topIds[0]!, ours: logits.map((logit) => logit - logZ) });
    }
    position += count;
  }
  return found;
}

/** In nats. Rounding to 8 bits moves log-probabilities by up to .8, each implementation's its own way. */
const TIES = { f32: 0.1, int8: 0.5 } as const;

async function openReal(arithmetic?: Arithmetic): Promise<WebGpuBackend> {
  return await withSources(REAL_MODEL_LOCATION!, async (sources) => {
    const { files } = await openModel(sources);
    const sizes = { contextLength: 256, kvBlocks: 16, warmUp: false, limits: "default" } as const;
    return await createWebGpuBackend({ files, ...(arithmetic && { arithmetic }), ...sizes });
  });
}

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

for (const arithmetic of ARITHMETICS) {
  Deno.test({
    name: arithmetic === "f32"
      ? "the real model on WebGPU is exact, but for what keys and values lose as halves"
      : "the real model on WebGPU in int8 is about as close to exact arithmetic as llama.cpp is",
    ignore,
  }, async () => {
    const backend = await openReal(arithmetic);
    const distances: number[] = [], natives: number[] = [];
    let departures = 0, count = 0;
    for (const run of RUNS) {
      for (const [step, { best, ours }] of (await forced(backend, run)).entries()) {
        const candidates = run.steps[step]!;
        for (const [i, [, native, exact]] of candidates.entries()) {
          distances.push(Math.abs(ours[i]! - exact));
          natives.push(Math.abs(native - exact));
        }
        count++;
        if (best === run.tokens[step]) continue;
        departures++;
        assertTied(candidates, best, TIES[arithmetic]);
      }
    }
    await backend.dispose();
    const [ours, native] = [mean(distances), mean(natives)];
    console.log(
      `WebGPU in ${arithmetic}, log-probabilities to exact arithmetic: mean ${ours.toFixed(5)}, ` +
        `largest ${Math.max(...distances).toFixed(5)} nats (llama.cpp: mean ${
          native.toFixed(5)
        }); ` +
        `${departures} of ${count} steps draw another token than llama.cpp`,
    );
    assertLess(ours, arithmetic === "f32" ? 0.005 : 1.3 * native);
  });
}

Deno.test({
  name: "the real model on WebGPU draws the same text ahead as one step at a time",
  ignore,
}, async () => {
  const prompt = GREEDY_RUNS[0]!.promptTokens;
  const sampling = { temperature: 0.8, topP: 0.95, seed: 5n };
  const backend = await openReal();
  const { follow } = backend;
  const texts = [];
  for (const ahead of [false, true]) {
    Object.assign(backend, { follow: ahead ? follow : undefined });
    const engine = new LocalEngine(backend);
    texts.push((await run(engine, request(prompt, { maxTokens: STEPS, sampling }))).tokens);
  }
  await backend.dispose();
  assertEquals(texts[1], texts[0]);
});
