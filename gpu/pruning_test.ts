import { assert, assertAlmostEquals, assertEquals, assertLess, assertRejects } from "@std/assert";
import { type AttentionPlan, type Backend, DENSE, type KeySketch } from "../core/engine/backend.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import { lastOf, readPrompt } from "../tests/support/backend_steps.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { normals, randomNumbers } from "../tests/support/random.ts";
import { tinyModel } from "../tests/support/tiny_model.ts";
import { createWasmBackend } from "../wasm/backend.ts";
import { createWebGpuBackend } from "./backend.ts";

const ignore = ADAPTER === undefined;
const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel({ type: "F16" }))]);
const { layers, kvHeads, headSize } = files.config;
const PROMPT = Array.from({ length: 150 }, (_, i) => (i * i * 31 + 7 * i + 1) % 200);
const MASS: AttentionPlan = { kind: "mass", mass: 0.5, minBlocks: 4 };
const SIZES = { files, kvBlocks: 64, topK: 8, kvType: "f32", warmUp: false } as const;

const table = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);

/** Some map of the keys, spread widely over the levels. */
function sketch(): KeySketch {
  const parts = layers * kvHeads;
  const map = normals(parts * headSize * headSize, 1, randomNumbers(3));
  return {
    dimensions: headSize,
    keyMap: map,
    keyOffset: normals(parts * headSize, 0.5, randomNumbers(4)),
    queryMap: map.map((x) => 0.1 * x),
  };
}

let made: Promise<Backend> | undefined;

/** One backend for all tests: compiling its kernels is what takes time. */
async function prunable(): Promise<Backend> {
  const backend = await (made ??= createWebGpuBackend(SIZES));
  await backend.pruning!.useSketch(sketch());
  return backend;
}

/** Reads the prompt densely, all but its last token. */
const prefill = (backend: Backend, blockTable: number[], chunk?: number) =>
  readPrompt(backend, PROMPT, blockTable, chunk);

/** The prompt's last token under a plan. */
const last = (blockTable: number[], attention: AttentionPlan) =>
  lastOf(PROMPT, blockTable, attention);

const decode = (backend: Backend, blockTable: number[], plan: AttentionPlan) =>
  backend.forward([last(blockTable, plan)]);

Deno.test(
  { name: "WebGpuBackend: pruned attention that reads all is dense, bit for bit", ignore },
  async () => {
    const backend = await prunable();
    await prefill(backend, table(10));
    const dense = await decode(backend, table(10), DENSE);
    for (
      const plan of [
        { kind: "mass", mass: 0.01, minBlocks: 10 },
        { kind: "mass", mass: 1, minBlocks: 10 },
        { kind: "threshold", threshold: 1, minBlocks: 99 },
        { kind: "threshold", threshold: 0, minBlocks: 0 },
      ] as const
    ) {
      const { rows, attention } = await decode(backend, table(10), plan);
      assertEquals(rows, dense.rows, plan.kind);
      assertEquals(attention[0]!.blocksRead, dense.attention[0]!.blocksRead);
    }
  },
);

Deno.test({
  name: "WebGpuBackend: a pruned token never depends on chunks, blocks or neighbours",
  ignore,
}, async () => {
  const backend = await prunable();
  await prefill(backend, table(10));
  const alone = await decode(backend, table(10), MASS);
  assertLess(alone.attention[0]!.blocksRead, alone.attention[0]!.blocksTotal);
  await prefill(backend, table(10, 20).reverse(), 17);
  const other = last(table(10, 20).reverse(), MASS);
  assertEquals((await backend.forward([other])).rows, alone.rows);
  const together = await backend.forward([last(table(10), DENSE), other]);
  assertEquals(together.rows[1], alone.rows[0]);
  assertEquals(together.attention[1], alone.attention[0]);
});

Deno.test({ name: "WebGpuBackend prunes as WASM does", ignore }, async () => {
  const gpu = await prunable();
  const wasm = await createWasmBackend(SIZES);
  await wasm.pruning!.useSketch(sketch());
  await prefill(gpu, table(10));
  await prefill(wasm, table(10));
  for (
    const plan of [
      DENSE,
      MASS,
      { kind: "mass", mass: 0.8, minBlocks: 0 },
      { kind: "threshold", threshold: 0.08, minBlocks: 5 },
      { kind: "threshold", threshold: 0.2, minBlocks: 0 },
    ] as const
  ) {
    const [ours, theirs] = [
      await decode(gpu, table(10), plan),
      await decode(wasm, table(10), plan),
    ];
    const [found, expected] = [ours.attention[0]!, theirs.attention[0]!];
    // The core's scan rounds queries to 8 bits and takes powers of two 6 % off.
    const units = layers * kvHeads;
    assertLess(Math.abs(found.blocksRead - expected.blocksRead), units + 1, JSON.stringify(plan));
    assertAlmostEquals(found.massDropped, expected.massDropped, 0.06, JSON.stringify(plan));
    if (found.blocksRead === expected.blocksRead) {
      assertEquals(found.macs, expected.macs);
      assertAlmostEquals(ours.rows[0]!.entropy, theirs.rows[0]!.entropy, 0.02);
    }
  }
  await wasm.dispose();
});

Deno.test({ name: "WebGpuBackend drops less the more mass it is to keep", ignore }, async () => {
  const backend = await prunable();
  await prefill(backend, table(10));
  let before = { blocks: 0, dropped: 1 };
  for (const mass of [0.1, 0.5, 0.8, 0.95, 1]) {
    const plan = { kind: "mass", mass, minBlocks: 0 } as const;
    const { blocksRead, massDropped } = (await decode(backend, table(10), plan)).attention[0]!;
    assert(blocksRead >= before.blocks && massDropped <= before.dropped, `mass ${mass}`);
    assertLess(massDropped, 1 - mass + 1e-6);
    before = { blocks: blocksRead, dropped: massDropped };
  }
});

Deno.test(
  { name: "WebGpuBackend copies and swaps sketches with their blocks", ignore },
  async () => {
    const backend = await prunable();
    await prefill(backend, table(10));
    const expected = await decode(backend, table(10), MASS);
    await backend.copyBlocks(table(10).map((block) => [block, 20 + block]));
    assertEquals(await decode(backend, table(10, 20), MASS), expected);
    const content = await backend.readBlocks(table(10));
    const { kvBytes } = backend.describe();
    assertEquals(content.length, 10 * kvBytes / backend.limits.kvBlocks);
    await backend.writeBlocks(table(10, 40), content);
    assertEquals(await decode(backend, table(10, 40), MASS), expected);
  },
);

Deno.test(
  { name: "WebGpuBackend.pruning gathers the moments that WASM does", ignore },
  async () => {
    const gpu = await prunable();
    const wasm = await createWasmBackend(SIZES);
    const moments = [];
    for (const backend of [gpu, wasm]) {
      await backend.pruning!.gather(true, 3);
      await prefill(backend, table(10));
      moments.push((await backend.pruning!.gather(false))!);
    }
    const [found, expected] = moments;
    assertEquals(found!.tokens, PROMPT.length - 1);
    for (const name of ["keyMean", "keys", "queries"] as const) {
      const difference = found![name].reduce(
        (most, x, i) => Math.max(most, Math.abs(x - expected![name][i]!)),
        0,
      );
      assertEquals(found![name].length, expected![name].length);
      assertLess(difference, 1e-4, name);
      assertLess(0.01, Math.max(...found![name]), name);
    }
    assertEquals(await gpu.pruning!.gather(false), undefined);
    await wasm.dispose();
  },
);

Deno.test(
  { name: "WebGpuBackend refuses plans and sketches that it cannot use", ignore },
  async () => {
    const backend = await prunable();
    const good = sketch();
    const use = (bad: Partial<KeySketch>) => () => backend.pruning!.useSketch({ ...good, ...bad });
    await assertRejects(use({ dimensions: 20 }), RangeError, "dimensions is 20, allowed is 8, 16");
    await assertRejects(use({ keyOffset: new Float32Array(3) }), RangeError, "length of keyOffset");
    await assertRejects(() => backend.pruning!.gather(true, 0), RangeError, "stretch is 0");
    assertEquals(backend.describe().prunes, true);
    await backend.pruning!.useSketch(undefined);
    assertEquals(backend.describe().prunes, false);
    await assertRejects(() => decode(backend, table(10), MASS), RangeError, "without a key sketch");
  },
);
