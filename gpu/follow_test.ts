import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { BackendError } from "../core/errors.ts";
import { uniform } from "../core/engine/sampling/random.ts";
import { openModel } from "../core/model/gguf/open_model.ts";
import { MemorySource } from "../core/model/memory_source.ts";
import { blocks, part, text } from "../tests/support/backend_steps.ts";
import { capturedGpu } from "../tests/support/captured_gpu.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { tinyModel } from "../tests/support/tiny_model.ts";
import { createWebGpuBackend } from "./backend.ts";

const ignore = ADAPTER === undefined;

/** Nothing is compiled beforehand: the first step is still being prepared when others come. */
async function tinyBackend(gpu = navigator.gpu) {
  const { files } = await openModel([new MemorySource("tiny.gguf", tinyModel({ type: "Q4_1" }))]);
  return await createWebGpuBackend({ files, gpu, kvBlocks: 64, topK: 8, warmUp: false });
}

Deno.test({
  name: "WebGpuBackend: steps that follow others unread are those with known tokens, bit for bit",
  ignore,
}, async () => {
  const backend = await tinyBackend();
  const prompts = [17, 5, 30].map((length, i) => text(length, i + 2));
  const plain = { topK: 0, topP: 1, minP: 0 };
  const samplings = [
    { ...plain, temperature: 0 },
    { ...plain, temperature: 1 },
    { topK: 20, topP: 0.9, minP: 0.01, temperature: 3 },
  ];
  const drawOf = (sequence: number, step: number) => ({
    ...samplings[sequence]!,
    u: uniform(9n, 8 * sequence + step),
  });
  const start = () =>
    backend.forward(prompts.map((prompt, i) => ({
      ...part(prompt, 0, blocks(4, 4 * i), "last"),
      draw: drawOf(i, 0),
    })));
  // Sequence 1 ends after the first step, the others change places.
  const orders = [[0, 1, 2], [2, 0], [0, 2], [2]];
  const followers = (order: readonly number[], before: readonly number[], steps: number) =>
    order.map((sequence) => ({
      row: before.indexOf(sequence),
      position: prompts[sequence]!.length + steps,
      blockTable: blocks(4, 4 * sequence),
      draw: drawOf(sequence, steps + 1),
    }));
  const begun = [start()];
  for (const [i, order] of orders.entries()) {
    begun.push(backend.follow(followers(order, orders[Math.max(0, i - 1)]!, i)));
  }
  const found = await Promise.all(begun);
  const logits = await backend.logits(0);

  let known = await start();
  const expected = [known];
  for (const [i, order] of orders.entries()) {
    const batch = followers(order, orders[Math.max(0, i - 1)]!, i);
    known = await backend.forward(
      batch.map(({ row, position, blockTable, draw }) => ({
        ...part([known.rows[row]!.drawn!.token], position, blockTable, "last"),
        draw,
      })),
    );
    expected.push(known);
  }
  assertEquals(found, expected);
  assertEquals(logits, await backend.logits(0));
  const following = (row: number) => [{ row, position: 40, blockTable: blocks(4) }];
  const beyond = "it follows row 1, the step before has 1";
  await assertRejects(() => backend.follow(following(1)), RangeError, beyond);
  await backend.forward([part(text(3), 0, blocks(1))]);
  const undrawn = "it follows row 0, the step before draws nothing from it";
  await assertRejects(() => backend.follow(following(0)), RangeError, undrawn);
  await backend.dispose();
});

Deno.test({
  name: "WebGpuBackend: a step draws from its rows what it would when asked",
  ignore,
}, async () => {
  const backend = await tinyBackend();
  const draws = [0, 0.2, 0.9].flatMap((u) => [
    { topK: 0, topP: 1, minP: 0, temperature: 4, u },
    { topK: 30, topP: 0.9, minP: 0.01, temperature: 0.5, u },
    { topK: 0, topP: 1, minP: 0, temperature: 0, u },
  ]);
  const batch = draws.map((draw, i) => ({ ...part(text(4), 0, blocks(1, i), "all"), draw }));
  const { rows } = await backend.forward(batch);
  const overrides = { ids: new Uint32Array(), logits: new Float32Array() };
  const ids = new Set<number>();
  for (const [row, { drawn }] of rows.entries()) {
    if (row % 4 < 3) {
      assertEquals(drawn, undefined);
      continue;
    }
    const token = await backend.draw(row, { ...draws[(row - 3) / 4]!, overrides });
    const [logit] = await backend.logitsOf(row, [token!]);
    assertEquals(drawn, { token: token!, logit: logit! });
    ids.add(token!);
  }
  assertGreater(ids.size, 3);
  await backend.dispose();
});

Deno.test(
  { name: "WebGpuBackend rejects all steps in flight when its device goes", ignore },
  async () => {
    const { gpu, devices } = capturedGpu();
    const backend = await tinyBackend(gpu);
    const draw = { topK: 0, topP: 1, minP: 0, temperature: 0.8, u: 0.5 };
    const calls = [backend.forward([{ ...part(text(60), 0, blocks(4)), draw }])];
    for (const position of [60, 61]) {
      calls.push(backend.follow([{ row: 0, position, blockTable: blocks(4), draw }]));
    }
    devices[0]!.destroy();
    for (const call of calls) {
      const error = await assertRejects(() => call, BackendError, "WebGPU device");
      assert(error.fatal);
    }
  },
);
