/**
 * The real model beside native llama.cpp and beside exact arithmetic (`exact_reference.py`), with
 * llama.cpp's tokens forced: 5 prompts, 48 steps each, 20 candidates a step.
 *
 * Llama.cpp rounds activations to 8 bits, as this engine does in arithmetic `int8`, and each rounding its
 * own way sends both as far from exact arithmetic as from each other. So the yardstick is llama.cpp's
 * own distance from exact arithmetic.
 */
import { assertLess } from "@std/assert";
import { type Backend, DENSE } from "../../core/engine/backend.ts";
import { withSources } from "../../core/host/open_engine.ts";
import { openModel } from "../../core/model/gguf/open_model.ts";
import { createWasmBackend } from "../../wasm/backend.ts";
import { assertTied, GREEDY_RUNS, type GreedyRun } from "../support/greedy_runs.ts";
import { REAL_MODEL } from "../support/real_model.ts";

/** What each arithmetic with each form of the KV cache is held to. */
const CASES = [
  // No farther from exact arithmetic than llama.cpp, give or take.
  { arithmetic: "int8", kvType: "f32", distance: 1.1, tie: 0.1, departures: 6 },
  // Keys and values in 8 bits.
  { arithmetic: "int8", kvType: "q8", distance: 1.4, tie: 0.4, departures: 12 },
  // Activations in 16 bits, alone and with that cache.
  { arithmetic: "f32", kvType: "f32", distance: 0.02, tie: 0.1, departures: 7 },
  { arithmetic: "f32", kvType: "q8", distance: 0.5, tie: 0.1, departures: 7 },
] as const;

/** Our log-probabilities after the prompt and after each forced token: shape [48][vocabulary]. */
async function forced(
  backend: Backend,
  { promptTokens, tokens }: GreedyRun,
): Promise<Float32Array[]> {
  const all = [...promptTokens, ...tokens.slice(0, -1)];
  const blockTable = Array.from({ length: Math.ceil(all.length / 16) }, (_, block) => block);
  const rows: Float32Array[] = [];
  for (let position = 0; position < all.length; position += 64) {
    const part = all.slice(position, position + 64);
    const input = { tokens: part, position, blockTable, attention: DENSE, output: "all" } as const;
    const { rows: stats } = await backend.forward([input]);
    for (const [row, { logZ }] of stats.entries()) {
      rows.push((await backend.logits(row)).map((logit) => logit - logZ));
    }
  }
  return rows.slice(promptTokens.length - 1);
}

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

for (const { arithmetic, kvType, ...bounds } of CASES) {
  Deno.test({
    name:
      `the real model in ${arithmetic}, KV in ${kvType}, is at most ${bounds.distance} times as far ` +
      "from exact arithmetic as llama.cpp",
    ignore: REAL_MODEL === undefined,
  }, async () => {
    const backend = await withSources({ paths: [REAL_MODEL ?? ""] }, async (sources) => {
      const { files } = await openModel(sources);
      return await createWasmBackend({
        files,
        arithmetic,
        kvType,
        contextLength: 256,
        kvBlocks: 16,
      });
    });
    const distance = {
      oursNative: [] as number[],
      oursExact: [] as number[],
      native: [] as number[],
    };
    let departures = 0;
    for (const run of GREEDY_RUNS) {
      const rows = await forced(backend, run);
      for (const [step, candidates] of run.steps.entries()) {
        const ours = rows[step]!;
        for (const [id, native, exact] of candidates) {
          distance.oursNative.push(Math.abs(ours[id]! - native));
          distance.oursExact.push(Math.abs(ours[id]! - exact));
          distance.native.push(Math.abs(native - exact));
        }
        const best = ours.indexOf(ours.reduce((a, b) => Math.max(a, b)));
        if (best === run.tokens[step]) continue;
        departures++;
        assertTied(candidates, best, bounds.tie);
      }
    }
    await backend.dispose();
    console.log(
      `${arithmetic}, KV in ${kvType}, mean difference of log-probabilities in nats: ` +
        `ours to llama.cpp ${mean(distance.oursNative).toFixed(4)}, ` +
        `ours to exact ${mean(distance.oursExact).toFixed(4)}, ` +
        `llama.cpp to exact ${mean(distance.native).toFixed(4)}; ` +
        `${departures} of ${5 * 48} steps draw another token`,
    );
    assertLess(mean(distance.oursExact), bounds.distance * mean(distance.native));
    assertLess(departures, bounds.departures);
  });
}
