/** The GPU of the tests: whichever adapter there is, at its largest and at WebGPU's default limits. */
import { type Device, openDevice, probeAdapter } from "../../gpu/device.ts";
import type { Kernel } from "../../gpu/kernel.ts";
import { Pipelines } from "../../gpu/pipelines.ts";

/** What there is, if anything; tests that need it are ignored where there is none. */
export const ADAPTER = await probeAdapter();

if (ADAPTER === undefined) console.warn("GPU tests are ignored: there is no WebGPU adapter");

export const LIMITS = ["default", "largest"] as const;

/** What a kernel's bindings hold, by name. */
export type KernelData = Readonly<Record<string, Float32Array | Uint32Array>>;

/** Runs single kernels on plain arrays. */
export class GpuProbe {
  readonly device: Device;
  readonly #pipelines: Pipelines;

  private constructor(device: Device) {
    this.device = device;
    this.#pipelines = new Pipelines(device.gpu);
  }

  static async open(limits: "default" | "largest" = "default"): Promise<GpuProbe> {
    return new GpuProbe(await openDevice({ limits }));
  }

  close(): void {
    this.device.gpu.destroy();
  }

  /**
   * Runs a kernel once.
   *
   * @param given What its bindings hold, by name; written back where the kernel writes.
   */
  async run(
    kernel: Kernel,
    given: KernelData,
    workgroups: readonly [number, number?, number?],
  ): Promise<void> {
    const { gpu } = this.device;
    const compiled = await this.#pipelines.compile(kernel);
    const buffers = new Map(kernel.bindings.map(({ name, access }) => {
      const data = given[name]!;
      const usage = access === "uniform" ? GPUBufferUsage.UNIFORM : GPUBufferUsage.STORAGE;
      const buffer = gpu.createBuffer({
        size: Math.max(16, data.byteLength),
        usage: usage | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC,
      });
      gpu.queue.writeBuffer(buffer, 0, data as Float32Array<ArrayBuffer>);
      return [name, buffer];
    }));
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(compiled.pipeline);
    pass.setBindGroup(0, this.#pipelines.bind(compiled, Object.fromEntries(buffers)));
    pass.dispatchWorkgroups(...workgroups as [number, number, number]);
    pass.end();
    const written = kernel.bindings.filter(({ access }) => access === "write").map(({ name }) => {
      const source = buffers.get(name)!;
      const size = source.size;
      const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
      const copy = gpu.createBuffer({ size, usage });
      encoder.copyBufferToBuffer(source, 0, copy, 0, size);
      return { name, copy };
    });
    gpu.queue.submit([encoder.finish()]);
    for (const { name, copy } of written) {
      await copy.mapAsync(GPUMapMode.READ);
      const data = given[name]!;
      const bytes = new Uint8Array(copy.getMappedRange()).slice(0, data.byteLength);
      new Uint8Array(data.buffer, data.byteOffset, data.byteLength).set(bytes);
      copy.destroy();
    }
    for (const buffer of buffers.values()) buffer.destroy();
  }
}
