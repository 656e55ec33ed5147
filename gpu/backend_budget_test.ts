/** What a step costs besides time: dispatches, and bytes read back. */
import { assert, assertEquals, assertFalse, assertRejects } from "@std/assert";
import { BackendError } from "../core/errors.ts";
import { tinyFiles } from "../tests/support/backend_lifecycle.ts";
import { blocks, part, text } from "../tests/support/backend_steps.ts";
import { adapterOf, capturedGpu } from "../tests/support/captured_gpu.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { tinyGpuBackend } from "../tests/support/tiny_gpu_backend.ts";
import { createWebGpuBackend } from "./backend.ts";

const ignore = ADAPTER === undefined;

Deno.test({
  name: "WebGpuBackend takes at most 8 dispatches a layer and 8 more, and reads back little",
  ignore,
}, async () => {
  const captured = capturedGpu();
  const backend = await createWebGpuBackend({
    ...{ files: await tinyFiles({ type: "F16" }), gpu: captured.gpu, kvBlocks: 64, warmUp: false },
  });
  const { layers, kvHeads, headSize } = backend.config;
  const map = new Float32Array(layers * kvHeads * 8 * headSize).fill(0.1);
  const sketch = { dimensions: 8, keyMap: map, queryMap: map };
  await backend.pruning.useSketch({ ...sketch, keyOffset: new Float32Array(layers * kvHeads * 8) });
  await backend.forward([part(text(100), 0, blocks(7), "none")]);
  const device = captured.devices[0]!;
  const create = device.createBuffer.bind(device);
  let bytes = 0;
  device.createBuffer = (descriptor) => {
    if (descriptor.usage & GPUBufferUsage.MAP_READ) bytes += descriptor.size;
    return create(descriptor);
  };
  const attention = { kind: "mass", mass: 0.5, minBlocks: 0 } as const;
  const draw = { topK: 0, topP: 0.9, minP: 0, temperature: 0.8, u: 0.5 };
  const step = { ...part(text(1), 100, blocks(7)), attention, draw };
  await backend.forward([step]);
  assert(bytes > 0 && bytes <= 4096, `it read ${bytes} bytes`);
  bytes = 0;
  await backend.logitsOf(0, Uint32Array.from({ length: 100 }, (_, i) => 2 * i));
  assertEquals(bytes, 400, "single logits come without the rest of their row");
  if (device.features.has("timestamp-query")) {
    const kernels = await backend.profile([step]);
    assertEquals(kernels.length, 8 * layers + 5);
    assert(kernels.every(({ seconds }) => seconds >= 0));
    // The file has 1e-5 as a float, which is 9.99999974…e-6.
    assert(kernels.some(({ kernel }) => kernel.includes(" norm 0.00001 ")));
  }
  await backend.dispose();
});

Deno.test({
  name: "WebGpuBackend says that a device cannot time kernels, and computes on",
  ignore,
}, async () => {
  const own = await navigator.gpu.requestAdapter();
  const gpu = adapterOf("without times", () => own!.requestDevice());
  const backend = await tinyGpuBackend({ gpu });
  const step = [part(text(3), 0, blocks(1))];
  const error = await assertRejects(() => backend.profile(step), BackendError, "timestamp queries");
  assertFalse(error.fatal);
  assertEquals((await backend.forward(step)).rows.length, 1);
  await backend.dispose();
});
