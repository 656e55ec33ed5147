/** What `createWebGpuBackend` refuses, and how it names it. */
import { assertFalse, assertRejects, assertStringIncludes } from "@std/assert";
import { BackendError } from "../core/errors.ts";
import { tinyFiles } from "../tests/support/backend_lifecycle.ts";
import { capturedGpu } from "../tests/support/captured_gpu.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { tinyGpuBackend } from "../tests/support/tiny_gpu_backend.ts";
import { createWebGpuBackend, type WebGpuBackendOptions } from "./backend.ts";

const ignore = ADAPTER === undefined;

Deno.test({ name: "WebGpuBackend refuses by name what no binding holds", ignore }, async () => {
  await assertRejects(
    () => tinyGpuBackend({ kvBlocks: 2 ** 20 }),
    RangeError,
    "kvBlocks is 1048576, allowed is at most",
  );
  // A layer's block has 2 KiB, and a binding 128 MiB.
  const files = await tinyFiles({ type: "Q4_1" });
  await assertRejects(
    () => createWebGpuBackend({ files, contextLength: 2 ** 21, limits: "default" }),
    RangeError,
    "contextLength is 2097152, allowed is at most 1048576",
  );
  await assertRejects(
    () => tinyGpuBackend({ maxOutputRows: 2 ** 18 }),
    RangeError,
    "allowed are 134217728, this device's largest binding",
  );
});

Deno.test(
  { name: "createWebGpuBackend refuses options that are out of range", ignore },
  async () => {
    for (const options of [{ kvBlocks: 0 }, { contextLength: 1.5 }]) {
      const [name, value] = Object.entries(options)[0]!;
      await assertRejects(() => tinyGpuBackend(options), RangeError, `${name} is ${value}`);
    }
    await assertRejects(
      () => tinyGpuBackend({}, { headSize: 12, hiddenSize: 64 }),
      RangeError,
      "head size is 12",
    );
  },
);

Deno.test("createWebGpuBackend says where there is no WebGPU, and that it is not fatal", async () => {
  const none = { requestAdapter: () => Promise.resolve(null) } as unknown as GPU;
  const error = await assertRejects(
    () => tinyGpuBackend({ gpu: none }),
    BackendError,
    "no adapter",
  );
  assertFalse(error.fatal);
});

Deno.test({
  name: "createWebGpuBackend names the arithmetic that a device lacks, or that there is none of",
  ignore,
}, async () => {
  // It tells nothing of the language that its compiler takes.
  const { gpu } = capturedGpu();
  const error = await assertRejects(
    () => tinyGpuBackend({ gpu, arithmetic: "int8" }),
    BackendError,
  );
  assertStringIncludes(error.message, "arithmetic int8");
  assertStringIncludes(error.message, "lacks packed_4x8_integer_dot_product");
  assertFalse(error.fatal);
  const unknown = { arithmetic: "f64" } as unknown as Partial<WebGpuBackendOptions>;
  await assertRejects(() => tinyGpuBackend(unknown), RangeError, "it takes f32, int8");
});
