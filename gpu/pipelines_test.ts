import { assertEquals, assertInstanceOf, assertStringIncludes } from "@std/assert";
import { BackendError } from "../core/errors.ts";
import { ADAPTER } from "../tests/support/gpu.ts";
import { checked } from "./checked.ts";
import { openDevice } from "./device.ts";
import { type Kernel, write } from "./kernel.ts";
import { Pipelines } from "./pipelines.ts";

const ignore = ADAPTER === undefined;

const kernel = (name: string, statement: string): Kernel => ({
  name,
  bindings: [write("sums", "array<u32>")],
  code: `@compute @workgroup_size(1) fn main() { ${statement} }`,
});

Deno.test({
  name: "Pipelines compiles kernels side by side, and blames the one that is refused",
  ignore,
}, async () => {
  const { gpu } = await openDevice();
  const uncaptured: string[] = [];
  gpu.addEventListener("uncapturederror", (event) => {
    uncaptured.push((event as GPUUncapturedErrorEvent).error.message);
  });
  const pipelines = new Pipelines(gpu);
  const kernels = [
    kernel("first", "sums[0] = 1u;"),
    kernel("broken", "sums[0] = nothing;"),
    kernel("last", "sums[0] = 2u;"),
  ];
  // What is created meanwhile, under scopes of its own, is fine.
  const outcomes = await checked(
    gpu,
    "create",
    () => Promise.allSettled(kernels.map((kernel) => pipelines.compile(kernel))),
  );
  assertEquals(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  const [, broken] = outcomes;
  const error = broken?.status === "rejected" ? broken.reason : undefined;
  assertInstanceOf(error, BackendError);
  assertStringIncludes(error.message, "Cannot compile kernel broken");
  assertEquals(uncaptured, []);
  gpu.destroy();
});
