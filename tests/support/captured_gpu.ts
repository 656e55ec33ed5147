/** Entry points of WebGPU that tests have a hand on. */

export interface CapturedGpu {
  /** To be given as the option `gpu`. */
  readonly gpu: GPU;
  /** Devices in the order in which they were opened. */
  readonly devices: GPUDevice[];
}

/** The runtime's own, with a hand on every device that is opened through it. */
export function capturedGpu(): CapturedGpu {
  const devices: GPUDevice[] = [];
  const gpu = {
    async requestAdapter(options?: GPURequestAdapterOptions) {
      const adapter = await navigator.gpu.requestAdapter(options);
      return adapter && {
        features: adapter.features,
        limits: adapter.limits,
        info: adapter.info,
        async requestDevice(descriptor?: GPUDeviceDescriptor) {
          const device = await adapter.requestDevice(descriptor);
          devices.push(device);
          return device;
        },
      };
    },
  };
  return { gpu: gpu as unknown as GPU, devices };
}

/** One whose adapter has a name of the test's choice and opens devices as the test says. */
export function adapterOf(
  description: string,
  requestDevice: (options?: GPUDeviceDescriptor) => Promise<unknown>,
): GPU {
  const adapter = {
    features: new Set(),
    limits: {},
    info: { description, vendor: "", architecture: "", device: "" },
    requestDevice,
  };
  return { requestAdapter: () => Promise.resolve(adapter) } as unknown as GPU;
}

/** Runs `work` where `navigator.gpu` is another, or missing. */
export async function withGpu<T>(gpu: unknown, work: () => Promise<T>): Promise<T> {
  const own = Object.getOwnPropertyDescriptor(navigator, "gpu");
  Object.defineProperty(navigator, "gpu", { value: gpu, configurable: true });
  try {
    return await work();
  } finally {
    if (own) Object.defineProperty(navigator, "gpu", own);
    else delete (navigator as { gpu?: GPU }).gpu;
  }
}
