/** The whole backend beside the WASM core, on tiny models of every tensor type. */
import { assertAlmostEquals, assertEquals, assertLess } from "@std/assert";
import { type Arithmetic, ARITHMETICS } from "../core/engine/arithmetic.ts";
import type { TensorType } from "../core/model/tensors.ts";
import { tinyFiles } from "../tests/support/backend_lifecycle.ts";
import { blocks, part, text } from "../tests/support/backend_steps.ts";
import { ADAPTER, LIMITS } from "../tests/support/gpu.ts";
import type { TinyModelOptions } from "../tests/support/tiny_model.ts";
import { createWasmBackend } from "../wasm/backend.ts";
import { createWebGpuBackend } from "./backend.ts";

const ignore = ADAPTER === undefined;

const largest = (a: Float32Array, b: Float32Array) =>
  a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i]!)), 0);

for (const limits of LIMITS) {
  Deno.test(
    { name: `WebGpuBackend at ${limits} limits computes what WASM does`, ignore },
    async () => {
      const models: readonly (readonly [TinyModelOptions, number, Arithmetic?])[] = [
        [{ type: "F16" }, 2e-3],
        [{ type: "Q8_0", untied: true, heads: 4, kvHeads: 1 }, 2e-3],
        [{ type: "Q8_0", untied: true, heads: 4, kvHeads: 1 }, 0.05, "int8"],
        [{ type: "F16", ropeFactors: [1, 1.5, 2, 2.5, 3, 3.5, 4, 8], layers: 1 }, 2e-3],
      ];
      // Limits decide nothing but sizes, so one model is enough to see the larger ones taken.
      for (
        const [model, bound, arithmetic = "f32"] of limits === "default"
          ? models
          : models.slice(0, 1)
      ) {
        const files = await tinyFiles(model);
        const sizes = { files, kvBlocks: 16, topK: 8, maxOutputRows: 80, kvType: "f32" } as const;
        const gpu = await createWebGpuBackend({ ...sizes, limits, arithmetic, warmUp: false });
        const wasm = await createWasmBackend({ ...sizes, arithmetic });
        const step = [
          part(text(70), 0, blocks(5), "all"),
          part(text(9, 4), 0, blocks(1, 9), "last"),
        ];
        const found = await gpu.forward(step.slice(0, 1)),
          expected = await wasm.forward(step.slice(0, 1));
        let difference = 0;
        for (const row of [0, 1, 31, 69]) {
          difference = Math.max(difference, largest(await gpu.logits(row), await wasm.logits(row)));
        }
        const name = `${model.type} in ${arithmetic}`;
        console.log(`${name}, largest difference of logits to WASM: ${difference}`);
        assertLess(difference, bound, JSON.stringify(model));
        for (const [row, stats] of found.rows.entries()) {
          assertAlmostEquals(stats.entropy, expected.rows[row]!.entropy, bound);
          assertAlmostEquals(stats.endProbability, expected.rows[row]!.endProbability, bound);
        }
        assertEquals((await gpu.forward(step)).attention, (await wasm.forward(step)).attention);
        await gpu.dispose();
        await wasm.dispose();
      }
    },
  );
}

/** What both backends may differ by: 16 bits beside floats, or a level rounded the other way. */
const TO_WASM = { f32: 2e-3, int8: 0.05 } as const;

for (const arithmetic of ARITHMETICS) {
  Deno.test({ name: `WebGpuBackend in ${arithmetic} runs every tensor type`, ignore }, async () => {
    const types: TensorType[] = [
      ...["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"] as const,
      ...arithmetic === "f32" ? ["BF16", "F32"] as const : [],
    ];
    const differences: string[] = [];
    for (const type of types) {
      const files = await tinyFiles({ type, layers: 1 });
      const sizes = { files, kvBlocks: 16, topK: 8, kvType: "f32" } as const;
      const gpu = await createWebGpuBackend({ ...sizes, arithmetic, warmUp: false });
      const wasm = await createWasmBackend({ ...sizes, arithmetic });
      const step = [part(text(1), 0, blocks(1), "last")];
      const [[found], [expected]] = [
        (await gpu.forward(step)).rows,
        (await wasm.forward(step)).rows,
      ];
      assertAlmostEquals(found!.entropy, expected!.entropy, 0.1, type);
      const difference = largest(await gpu.logits(0), await wasm.logits(0));
      differences.push(`${type} ${difference.toExponential(1)}`);
      assertLess(difference, TO_WASM[arithmetic], type);
      await gpu.dispose();
      await wasm.dispose();
    }
    console.log(
      `in ${arithmetic}, largest difference of logits to WASM: ${differences.join(", ")}`,
    );
  });
}
