/** Files whose matrices differ in type, as llama.cpp's mixes (Q4_K_M and its like) write them. */
import { assertEquals, assertLess, assertRejects, assertStringIncludes } from "@std/assert";
import { ModelError } from "../core/errors.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import { blocks, part, text } from "../tests/support/backend_steps.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { tinyModel, type TinyModelOptions } from "../tests/support/tiny_model.ts";
import { createWasmBackend } from "../wasm/backend.ts";
import { createWebGpuBackend } from "./backend.ts";

const ignore = ADAPTER === undefined;

async function sizesOf(model: TinyModelOptions) {
  const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel(model))]);
  return { files, kvBlocks: 16, topK: 8, kvType: "f32" } as const;
}

Deno.test({
  name: "WebGpuBackend runs a layer whose values differ in type, in one dispatch more",
  ignore,
}, async () => {
  const types = { attn_v: "Q6_K", ffn_down: "Q6_K" } as const;
  for (const mixed of [{}, types]) {
    const sizes = await sizesOf({ type: "Q4_K", types: mixed });
    const gpu = await createWebGpuBackend({ ...sizes, arithmetic: "int8", warmUp: false });
    const wasm = await createWasmBackend(sizes);
    const step = [part(text(20), 0, blocks(2), "last")];
    const dispatches = await countDispatches(() => gpu.forward(step));
    assertEquals(dispatches, (mixed === types ? 8 : 7) * gpu.config.layers + 4);
    await wasm.forward(step);
    const [found, expected] = [await gpu.logits(0), await wasm.logits(0)];
    const difference = Math.max(...found.map((logit, id) => Math.abs(logit - expected[id]!)));
    console.log(`Q4_K with ${JSON.stringify(mixed)}, largest difference to WASM: ${difference}`);
    assertLess(difference, 1e-4);
    await gpu.dispose();
    await wasm.dispose();
  }
});

/** How often `act` has a kernel run. */
async function countDispatches(act: () => Promise<unknown>): Promise<number> {
  const passes = GPUComputePassEncoder.prototype;
  const { dispatchWorkgroups } = passes;
  let count = 0;
  passes.dispatchWorkgroups = function (...workgroups) {
    count++;
    return dispatchWorkgroups.apply(this, workgroups);
  };
  try {
    await act();
  } finally {
    passes.dispatchWorkgroups = dispatchWorkgroups;
  }
  return count;
}

Deno.test({
  name: "WebGpuBackend refuses by name gate and up projections that differ in type",
  ignore,
}, async () => {
  const sizes = await sizesOf({ type: "Q4_1", types: { ffn_up: "Q8_0" } });
  const error = await assertRejects(() => createWebGpuBackend(sizes), ModelError);
  assertStringIncludes(
    error.message,
    "Cannot load blk.0.ffn_up.weight on WebGPU: its type is Q8_0, " +
      "allowed is Q4_1, the type of blk.0.ffn_gate.weight",
  );
});
