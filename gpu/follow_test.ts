import { assert, assertEquals, assertRejects } from "@std/assert";
import { BackendError } from "../core/errors.ts";
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
  const start = () =>
    backend.forward(prompts.map((prompt, i) => part(prompt, 0, blocks(4, 4 * i), "last")));
  // Sequence 1 ends after the first step, the others change places.
  const orders = [[0, 1, 2], [2, 0], [0, 2], [2]];
  const following = (order: readonly number[], before: readonly number[], steps: number) =>
    order.map((sequence) => ({
      row: before.indexOf(sequence),
      position: prompts[sequence]!.length + steps,
      blockTable: blocks(4, 4 * sequence),
    }));
  const begun = [start()];
  for (const [i, order] of orders.entries()) {
    begun.push(backend.follow(following(order, orders[Math.max(0, i - 1)]!, i)));
  }
  const found = await Promise.all(begun);
  const logits = await backend.logits(0);

  let known = await start();
  const expected = [known];
  for (const [i, order] of orders.entries()) {
    const batch = following(order, orders[Math.max(0, i - 1)]!, i);
    known = await backend.forward(
      batch.map(({ row, position, blockTable }) =>
        part([known.rows[row]!.topIds[0]!], position, blockTable, "last")
      ),
    );
    expected.push(known);
  }
  assertEquals(found, expected);
  assertEquals(logits, await backend.logits(0));
  await assertRejects(
    () => backend.follow([{ row: 1, position: 40, blockTable: blocks(4) }]),
    RangeError,
    "it follows row 1, the step before has 1",
  );
  await backend.dispose();
});

Deno.test(
  { name: "WebGpuBackend rejects all steps in flight when its device goes", ignore },
  async () => {
    const { gpu, devices } = capturedGpu();
    const backend = await tinyBackend(gpu);
    const calls = [backend.forward([part(text(60), 0, blocks(4))])];
    for (const position of [60, 61]) {
      calls.push(backend.follow([{ row: 0, position, blockTable: blocks(4) }]));
    }
    devices[0]!.destroy();
    for (const call of calls) {
      const error = await assertRejects(() => call, BackendError, "WebGPU device");
      assert(error.fatal);
    }
  },
);
