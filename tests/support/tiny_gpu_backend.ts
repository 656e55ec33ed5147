/** A WebGPU backend on a tiny model, at WebGPU's default limits unless a test says. */
import { createWebGpuBackend, type WebGpuBackendOptions } from "../../gpu/backend.ts";
import type { WebGpuBackend } from "../../gpu/webgpu_backend.ts";
import { tinyFiles } from "./backend_lifecycle.ts";
import type { TinyModelOptions } from "./tiny_model.ts";

export async function tinyGpuBackend(
  options: Partial<WebGpuBackendOptions> = {},
  model: TinyModelOptions = { type: "Q4_1" },
): Promise<WebGpuBackend> {
  const sizes = { kvBlocks: 64, topK: 8, maxBatchTokens: 128, limits: "default" } as const;
  const files = options.files ?? await tinyFiles(model);
  return await createWebGpuBackend({ files, ...sizes, warmUp: false, ...options });
}
