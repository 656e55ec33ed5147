/** Files whose matrices differ in type, as llama.cpp's mixes (Q4_K_M and its like) write them. */
import { assertEquals, assertLess, assertRejects, assertStringIncludes } from "@std/assert";
import { ModelError } from "../core/errors.ts";
import type { TensorType } from "../core/model/tensors.ts";
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

const CASES: readonly { types: Readonly<Record<string, TensorType>>; dense: number }[] = [
  { types: {}, dense: 7 },
  // As Q4_K_M has half of its layers.
  { types: { attn_v: "Q6_K", ffn_down: "Q6_K" }, dense: 7 },
  // Integers and floats are summed in different kernels.
  { types: { attn_v: "F16" }, dense: 8 },
];

Deno.test({
  name: "WebGpuBackend runs layers whose values differ in type, quantised ones in no dispatch more",
  ignore,
}, async () => {
  for (const { types, dense } of CASES) {
    const sizes = await sizesOf({ type: "Q4_K", types });
    const gpu = await createWebGpuBackend({ ...sizes, arithmetic: "int8", warmUp: false });
    const wasm = await createWasmBackend(sizes);
    const { layers, kvHeads, headSize } = gpu.config;
    const map = new Float32Array(layers * kvHeads * 16 * headSize).fill(0.1);
    const keyOffset = new Float32Array(layers * kvHeads * 16);
    // With 70 tokens, a rounding to 8 bits falls the other way and moves logits by 0.07.
    const decode = part(text(1, 2), 20, blocks(2));
    const steps = [
      { step: part(text(20), 0, blocks(2)), dispatches: dense * layers + 4 },
      { step: decode, dispatches: dense * layers + 4 },
      {
        step: { ...decode, attention: { kind: "mass", mass: 0.5, minBlocks: 0 } },
        dispatches: (dense + 1) * layers + 4,
      },
    ] as const;
    for (const backend of [gpu, wasm]) {
      await backend.pruning!.useSketch({ dimensions: 16, keyMap: map, queryMap: map, keyOffset });
    }
    for (const { step, dispatches } of steps) {
      const name = `${JSON.stringify(types)}, ${step.tokens.length} tokens, ${step.attention.kind}`;
      assertEquals(await countDispatches(() => gpu.forward([step])), dispatches, name);
      await wasm.forward([step]);
      const [found, expected] = [await gpu.logits(0), await wasm.logits(0)];
      const difference = Math.max(...found.map((logit, id) => Math.abs(logit - expected[id]!)));
      console.log(`Q4_K with ${name}: largest difference to WASM ${difference}`);
      assertLess(difference, 1e-4, name);
    }
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
