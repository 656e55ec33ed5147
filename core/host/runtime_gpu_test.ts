import { assertEquals, assertFalse, assertRejects } from "@std/assert";
import { BackendError } from "../errors.ts";
import { runtimeGpu, withTrueLimits } from "./runtime_gpu.ts";

Deno.test("runtimeGpu is the runtime's own, and says where there is none", async () => {
  const own = Object.getOwnPropertyDescriptor(navigator, "gpu");
  const define = (value: unknown) =>
    Object.defineProperty(navigator, "gpu", { value, configurable: true });
  try {
    const gpu = {};
    define(gpu);
    assertEquals(await runtimeGpu() === gpu, true);
    define(undefined);
    const error = await assertRejects(runtimeGpu, BackendError, "this runtime has none");
    assertFalse(error.fatal);
  } finally {
    if (own) Object.defineProperty(navigator, "gpu", own);
    else delete (navigator as { gpu?: GPU }).gpu;
  }
});

/** As `bun-webgpu` gives it; tells what devices are asked for. */
function bunGpu(device: string) {
  const asked: unknown[] = [];
  const adapter = {
    info: { device },
    limits: { nextInChain: 0, maxBufferSize: 2 ** 30, maxStorageBuffersInVertexStage: 0 },
    requestDevice(descriptor: unknown) {
      asked.push(descriptor);
      return Promise.resolve({});
    },
  };
  const wgslLanguageFeatures = new Set(["pointer_composite_access"]);
  const gpu = { wgslLanguageFeatures, requestAdapter: () => Promise.resolve(adapter) };
  return { gpu: withTrueLimits(gpu as unknown as GPU), asked };
}

Deno.test("withTrueLimits asks for the limits that bun-webgpu does not know as they are", async () => {
  const { gpu, asked } = bunGpu("some GPU");
  const adapter = await gpu.requestAdapter();
  await adapter?.requestDevice();
  await adapter?.requestDevice({ label: "x", requiredLimits: { maxBufferSize: 2 ** 29 } });
  assertEquals(asked, [
    { requiredLimits: { maxStorageBuffersInVertexStage: 0 } },
    {
      label: "x",
      requiredLimits: { maxStorageBuffersInVertexStage: 0, maxBufferSize: 2 ** 29 },
    },
  ]);
});

Deno.test("withTrueLimits leaves the features of the language as they are", () => {
  const { wgslLanguageFeatures } = bunGpu("some GPU").gpu as { wgslLanguageFeatures?: unknown };
  assertEquals(wgslLanguageFeatures, new Set(["pointer_composite_access"]));
});

Deno.test("withTrueLimits takes an adapter that computes nothing for none", async () => {
  assertEquals(await bunGpu("null-backend").gpu.requestAdapter(), null);
});
