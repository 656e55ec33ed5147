import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertLess,
  assertNotEquals,
  assertRejects,
} from "@std/assert";
import {
  type AttentionPlan,
  type Backend,
  DENSE,
  type ForwardResult,
  type KeySketch,
} from "../core/engine/backend.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import { lastOf, readPrompt } from "../tests/support/backend_steps.ts";
import { normals, randomNumbers } from "../tests/support/random.ts";
import { tinyModel } from "../tests/support/tiny_model.ts";
import { createWasmBackend, type WasmBackendOptions } from "./backend.ts";
import { supports, type Variant } from "./loader.ts";

const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel({ type: "Q4_1" }))]);
const { layers, heads, kvHeads, headSize } = files.config;
const VARIANTS = (["simd128", "relaxed", "threads"] satisfies Variant[]).filter(supports);
const PROMPT = Array.from({ length: 150 }, (_, i) => (i * i * 31 + 7 * i + 1) % 200);
const MASS: AttentionPlan = { kind: "mass", mass: 0.5, minBlocks: 4 };

const table = (count: number, first = 0) => Array.from({ length: count }, (_, i) => first + i);

/** The keys themselves, times a factor, in all their dimensions. */
function sketch(): KeySketch {
  const parts = layers * kvHeads, random = randomNumbers(3);
  const map = normals(parts * headSize * headSize, 1, random);
  return {
    dimensions: headSize,
    keyMap: map,
    keyOffset: new Float32Array(parts * headSize),
    queryMap: map.map((x) => 0.1 * x),
  };
}

async function prunable(options: Partial<WasmBackendOptions> = {}): Promise<Backend> {
  const backend = await createWasmBackend({ files, kvBlocks: 64, topK: 8, ...options });
  await backend.pruning?.useSketch(sketch());
  return backend;
}

/** Reads the prompt densely, all but its last token. */
const prefill = (backend: Backend, blockTable: number[], chunk?: number) =>
  readPrompt(backend, PROMPT, blockTable, chunk);

/** The prompt's last token under a plan. */
const last = (blockTable: number[], attention: AttentionPlan) =>
  lastOf(PROMPT, blockTable, attention);

async function decode(backend: Backend, blockTable: number[], plan: AttentionPlan) {
  return await backend.forward([last(blockTable, plan)]);
}

for (const variant of VARIANTS) {
  const options = { variant, ...(variant === "threads" && { threads: 2 }) };

  Deno.test(`WasmBackend ${variant}: pruned attention that reads all is dense, bit for bit`, async () => {
    const backend = await prunable(options);
    await prefill(backend, table(10));
    const dense = await decode(backend, table(10), DENSE);
    for (
      const plan of [
        { kind: "mass", mass: 0.01, minBlocks: 10 },
        { kind: "threshold", threshold: 1, minBlocks: 99 },
        { kind: "threshold", threshold: 0, minBlocks: 0 },
      ] as const
    ) {
      assertEquals((await decode(backend, table(10), plan)).rows, dense.rows, plan.kind);
    }
    await backend.dispose();
  });

  Deno.test(`WasmBackend ${variant}: a pruned token never depends on chunks, blocks or neighbours`, async () => {
    const backend = await prunable(options);
    await prefill(backend, table(10));
    const alone = await decode(backend, table(10), MASS);
    await prefill(backend, table(10, 20).reverse(), 17);
    const other = last(table(10, 20).reverse(), MASS);
    assertEquals((await backend.forward([other])).rows, alone.rows);
    const together = await backend.forward([last(table(10), DENSE), other]);
    assertEquals(together.rows[1], alone.rows[0]);
    assertEquals(together.attention[1], alone.attention[0]);
    await backend.dispose();
  });
}

Deno.test("WasmBackend prunes to the same bits on every instruction set and with threads", async () => {
  const results: ForwardResult[] = [];
  for (const variant of VARIANTS) {
    const backend = await prunable({ variant, threads: variant === "threads" ? 3 : 1 });
    await prefill(backend, table(10));
    results.push(await decode(backend, table(10), MASS));
    await backend.dispose();
  }
  for (const result of results) assertEquals(result, results[0]);
});

Deno.test("WasmBackend counts what pruned attention read", async () => {
  const backend = await prunable();
  await prefill(backend, table(10));
  const dense = (await decode(backend, table(10), DENSE)).attention[0]!;
  const units = layers * kvHeads;
  const blockBytes = 2 * 16 * headSize + 3 * 64;
  assertEquals(dense, {
    blocksRead: 10 * units,
    blocksTotal: 10 * units,
    bytesRead: 10 * units * blockBytes,
    bytesTotal: 10 * units * blockBytes,
    macs: layers * heads * 2 * headSize * 150,
    macsTotal: layers * heads * 2 * headSize * 150,
    massDropped: 0,
  });
  const least = { kind: "mass", mass: 0, minBlocks: 4 } as const;
  const pruned = (await decode(backend, table(10), least)).attention[0]!;
  // The last block holds 6 of its 16 tokens.
  const exact = 2 * headSize * (3 * 16 + 6), scan = headSize * (150 + headSize);
  assertEquals({ ...pruned, massDropped: 0 }, {
    ...dense,
    blocksRead: 4 * units,
    bytesRead: 4 * units * blockBytes + 10 * units * 8 * headSize,
    macs: layers * heads * (exact + scan),
  });
  assert(pruned.massDropped > 0 && pruned.massDropped < 1);
  assertNotEquals(
    (await decode(backend, table(10), least)).rows,
    (await decode(backend, table(10), DENSE)).rows,
  );
  await backend.dispose();
});

Deno.test("WasmBackend drops less the more mass it is to keep", async () => {
  const backend = await prunable();
  await prefill(backend, table(10));
  let dropped = 1;
  for (const mass of [0.3, 0.6, 0.9, 0.99]) {
    const plan = { kind: "mass", mass, minBlocks: 0 } as const;
    const { massDropped } = (await decode(backend, table(10), plan)).attention[0]!;
    assertLess(massDropped, dropped + 1e-9);
    assertLess(massDropped, 1 - mass + 1e-6);
    dropped = massDropped;
  }
  await backend.dispose();
});

Deno.test("WasmBackend copies and swaps sketches with their blocks", async () => {
  const backend = await prunable();
  await prefill(backend, table(10));
  const expected = (await decode(backend, table(10), MASS)).rows;
  await backend.copyBlocks(table(10).map((block) => [block, block + 20]));
  assertEquals((await decode(backend, table(10, 20), MASS)).rows, expected);
  const content = await backend.readBlocks(table(10));
  assertEquals(content.length, 10 * backend.describe().kvBytes / 64);
  await backend.writeBlocks(table(10, 40), content);
  assertEquals((await decode(backend, table(10, 40), MASS)).rows, expected);
  await backend.dispose();
});

Deno.test("WasmBackend.pruning gathers the moments of rotated keys", async () => {
  const backend = await createWasmBackend({ files, kvBlocks: 16, kvType: "f32" });
  await backend.pruning?.gather(true);
  await prefill(backend, table(10), 50);
  const moments = (await backend.pruning?.gather(false))!;
  const tokens = PROMPT.length - 1;
  assertEquals(moments.tokens, tokens);
  // Records of exact floats hold 16 keys, then 16 values.
  const record = 2 * 16 * headSize;
  const content = new Float32Array((await backend.readBlocks(table(10))).buffer);
  const key = (layer: number, head: number, token: number, i: number) =>
    content[
      (Math.floor(token / 16) * layers * kvHeads + layer * kvHeads + head) * record +
      token % 16 * headSize + i
    ]!;
  for (const [layer, head, i, j] of [[0, 0, 0, 1], [1, 1, 5, 5], [1, 0, 15, 2]] as const) {
    const part = layer * kvHeads + head;
    let mean = 0, product = 0;
    for (let token = 0; token < tokens; token++) {
      mean += key(layer, head, token, i) / tokens;
      product += key(layer, head, token, i) * key(layer, head, token, j) / tokens;
    }
    assertAlmostEquals(moments.keyMean[part * headSize + i]!, mean, 1e-4);
    assertAlmostEquals(moments.keys[(part * headSize + i) * headSize + j]!, product, 1e-4);
  }
  for (let i = 0; i < headSize; i++) assert(moments.queries[i * headSize + i]! > 0);
  await backend.dispose();
});

Deno.test("WasmBackend refuses plans and sketches that it cannot use", async () => {
  const backend = await createWasmBackend({ files, kvBlocks: 16 });
  await prefill(backend, table(10));
  await assertRejects(() => decode(backend, table(10), MASS), RangeError, "without a key sketch");
  assertEquals(backend.describe().prunes, false);
  const good = sketch(),
    use = (bad: Partial<KeySketch>) => () => backend.pruning!.useSketch({ ...good, ...bad });
  await assertRejects(use({ dimensions: 20 }), RangeError, "dimensions is 20, allowed is 16");
  await assertRejects(use({ keyOffset: new Float32Array(3) }), RangeError, "length of keyOffset");
  await assertRejects(() => backend.pruning!.gather(true, 0), RangeError, "stretch is 0");
  await backend.pruning!.useSketch(good);
  assertEquals(backend.describe().prunes, true);
  for (const mass of [NaN, -0.1, 1.1]) {
    const plan = { kind: "mass", mass, minBlocks: 4 } as const;
    await assertRejects(() => decode(backend, table(10), plan), RangeError, `mass of its`);
  }
  await backend.pruning!.useSketch(undefined);
  await assertRejects(() => decode(backend, table(10), MASS), RangeError, "without a key sketch");
  await backend.dispose();
});
