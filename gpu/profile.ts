/** Times the dispatches of a step one by one, by timestamp queries. */
import { BackendError } from "../core/errors.ts";
import type { Dispatch } from "./dispatch.ts";
import { readback } from "./readback.ts";

export interface KernelTime {
  readonly kernel: string;
  readonly seconds: number;
  /** Bytes that it moves at the least. */
  readonly bytes: number;
}

/** @throws {BackendError} The device has no timestamp queries. Not fatal: it computes on. */
export function checkTimestamps({ features }: GPUDevice): void {
  if (features.has("timestamp-query")) return;
  throw new BackendError("Cannot time kernels: the device has no timestamp queries", {
    fatal: false,
  });
}

/**
 * Runs dispatches, each in a pass of its own.
 *
 * @throws {BackendError} The device has no timestamp queries.
 */
export async function timeDispatches(
  gpu: GPUDevice,
  dispatches: readonly Dispatch[],
): Promise<KernelTime[]> {
  checkTimestamps(gpu);
  const count = 2 * dispatches.length;
  const querySet = gpu.createQuerySet({ type: "timestamp", count });
  const usage = GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC;
  const times = gpu.createBuffer({ size: 8 * count, usage });
  const encoder = gpu.createCommandEncoder();
  for (const [i, { pipeline, bindings, workgroups }] of dispatches.entries()) {
    const pass = encoder.beginComputePass({
      timestampWrites: {
        querySet,
        beginningOfPassWriteIndex: 2 * i,
        endOfPassWriteIndex: 2 * i + 1,
      },
    });
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindings);
    pass.dispatchWorkgroups(...workgroups);
    pass.end();
  }
  encoder.resolveQuerySet(querySet, 0, count, times, 0);
  const read = readback(gpu, encoder, [{ buffer: times, offset: 0, size: 8 * count }]);
  gpu.queue.submit([encoder.finish()]);
  const nanoseconds = new BigUint64Array(await read());
  querySet.destroy();
  times.destroy();
  return dispatches.map(({ kernel, bytes }, i) => ({
    kernel,
    seconds: Number((nanoseconds[2 * i + 1] ?? 0n) - (nanoseconds[2 * i] ?? 0n)) / 1e9,
    bytes,
  }));
}
