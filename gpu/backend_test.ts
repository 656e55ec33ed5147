/** What the backend computes and what becomes of it. `backend_parity_test.ts` holds it against WASM. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import type { Backend } from "../core/engine/backend.ts";
import { BackendError, ModelError } from "../core/errors.ts";
import {
  BACKEND_CHECKS,
  type BackendCheck,
  chunksNeverChangeABit,
  neighboursNeverChangeABit,
} from "../tests/support/backend_contract.ts";
import {
  assertGoneAfterDispose,
  assertRefusesAndComputesOn,
  assertReportsProgress,
  assertShowsNaN,
  NARROW,
} from "../tests/support/backend_lifecycle.ts";
import { blocks, part, prefill, text } from "../tests/support/backend_steps.ts";
import { capturedGpu } from "../tests/support/captured_gpu.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { tinyGpuBackend } from "../tests/support/tiny_gpu_backend.ts";

const ignore = ADAPTER === undefined;

/** One for all tests that need no more: compiling its kernels is what takes time. */
let shared: Promise<Backend> | undefined;
const sharedBackend = () => shared ??= tinyGpuBackend();

for (const [behaviour, check] of Object.entries(BACKEND_CHECKS)) {
  const name = `WebGpuBackend: ${behaviour}`;
  Deno.test({ name, ignore }, async () => await check(await sharedBackend()));
}

/** Ways to compute that have kernels of their own; of chunks, what takes the fewest of them. */
const FORMS = [
  { kvType: "f32", arithmetic: "f32", staging: true },
  { kvType: "f16", arithmetic: "int8" },
] as const;

for (const form of FORMS) {
  Deno.test({
    name: `WebGpuBackend in ${form.arithmetic}, KV ${form.kvType}: ` +
      "chunks and neighbours never change a bit",
    ignore,
  }, async () => {
    const backend = await tinyGpuBackend(form);
    assertStringIncludes(backend.describe().variant, `${form.arithmetic} on `);
    const chunks = form.kvType === "f16" ? [1, 2, 5, 16, 31] : [16, 40];
    const checks: BackendCheck[] = [chunksNeverChangeABit(chunks), neighboursNeverChangeABit];
    for (const check of checks) await check(backend);
    await backend.dispose();
  });
}

Deno.test({ name: "WebGpuBackend cuts what is larger than a binding", ignore }, async () => {
  const whole = await sharedBackend();
  // Two rows of the down projection, 128 columns in 4 bits, have 128 bytes.
  const cut = await tinyGpuBackend({ bindingBytes: 4096 });
  const expected = await prefill(whole, text(40), blocks(3), 64);
  assertEquals(await prefill(cut, text(40), blocks(3), 64), expected);
  const error = await assertRejects(() => tinyGpuBackend({ bindingBytes: 64 }), ModelError);
  assertStringIncludes(error.message, "two of its rows have 128 bytes");
  await cut.dispose();
});

Deno.test(
  { name: "WebGpuBackend refuses what does not fit, and computes on", ignore },
  async () => {
    const backend = await tinyGpuBackend(NARROW);
    await assertRefusesAndComputesOn(backend);
    await backend.dispose();
  },
);

Deno.test(
  { name: "WebGpuBackend rejects what is in flight when its device goes", ignore },
  async () => {
    const captured = capturedGpu();
    const backend = await tinyGpuBackend({ gpu: captured.gpu });
    const going = backend.forward([part(text(60), 0, blocks(4))]);
    captured.devices[0]!.destroy();
    for (const call of [going, backend.forward([part(text(3), 0, blocks(1))])]) {
      const error = await assertRejects(
        () => call,
        BackendError,
        "Cannot compute: the WebGPU device ",
      );
      assert(error.fatal);
    }
  },
);

Deno.test({
  name: "WebGpuBackend rejects after dispose, and a second dispose does nothing",
  ignore,
}, async () => {
  await assertGoneAfterDispose(await tinyGpuBackend());
});

Deno.test(
  { name: "WebGpuBackend gives no finite log Z where the weights hold a NaN", ignore },
  async () => await assertShowsNaN((files) => tinyGpuBackend({ files })),
);

Deno.test(
  { name: "createWebGpuBackend reports progress up to the bytes of all tensors", ignore },
  async () => await assertReportsProgress((onProgress) => tinyGpuBackend({ onProgress })),
);
