/**
 * The real model on WebGPU beside the WASM core in arithmetic `f32`, greedy and free. (In `int8` one
 * level rounded the other way moves everything after it: `docs/webgpu.md`, "How exact".)
 *
 * Software adapters take a second a step; ENTROPIC_GPU_STEPS and ENTROPIC_GPU_PROMPTS ask for more.
 */
import { assertEquals, assertLess } from "@std/assert";
import process from "node:process";
import { withSources } from "../../core/host/open_engine.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { createWebGpuBackend } from "../../gpu/backend.ts";
import { createWasmBackend } from "../../wasm/backend.ts";
import { blocks, part } from "../support/backend_steps.ts";
import { ADAPTER } from "../support/gpu.ts";
import { GREEDY_RUNS } from "../support/greedy_runs.ts";
import { REAL_MODEL_LOCATION } from "../support/real_model_location.ts";

const STEPS = Number(process.env.ENTROPIC_GPU_STEPS ?? 3);
const PROMPTS = Number(process.env.ENTROPIC_GPU_PROMPTS ?? 1);
/** KV blocks of a sequence. */
const BLOCKS = 16;

Deno.test({
  name: "the real model says on WebGPU what it says on WASM in f32",
  ignore: REAL_MODEL_LOCATION === undefined || ADAPTER === undefined,
}, async () => {
  const runs = GREEDY_RUNS.slice(0, PROMPTS);
  const [wasm, gpu] = await withSources(REAL_MODEL_LOCATION!, async (sources) => {
    const { files } = await openModel(sources);
    const sizes = { files, contextLength: 16 * BLOCKS, kvBlocks: runs.length * BLOCKS };
    const exact = { ...sizes, arithmetic: "f32", kvType: "f32" } as const;
    return [await createWasmBackend(exact), await createWebGpuBackend({ ...exact, warmUp: false })];
  });
  let [largest, sum, count] = [0, 0, 0];
  let batch = runs.map(({ promptTokens }, i) =>
    part([...promptTokens], 0, blocks(BLOCKS, i * BLOCKS))
  );
  for (let step = 0; step < STEPS; step++) {
    const [found, expected] = [await gpu.forward(batch), await wasm.forward(batch)];
    const best = expected.rows.map(({ topIds }) => topIds[0]!);
    // Compared at every step, so what follows is each backend's own text.
    assertEquals(found.rows.map(({ topIds }) => topIds[0]), best, `step ${step}`);
    for (const row of batch.keys()) {
      const logits = await wasm.logits(row);
      for (const [id, logit] of (await gpu.logits(row)).entries()) {
        const difference = Math.abs(logit - logits[id]!);
        largest = Math.max(largest, difference);
        sum += difference;
        count++;
      }
    }
    batch = batch.map(({ tokens, position, blockTable }, i) =>
      part([best[i]!], position + tokens.length, blockTable)
    );
  }
  await gpu.dispose();
  await wasm.dispose();
  console.log(
    `${PROMPTS} prompts, ${STEPS} steps: the same tokens on WebGPU and WASM, largest ` +
      `difference of logits ${largest.toExponential(1)}, mean ${(sum / count).toExponential(1)}`,
  );
  // What 16 bits leave of activations; 8 bits leave 2.8, and .2 in the mean.
  assertLess(largest, 0.03);
  assertLess(sum / count, 3e-3);
});
