/** The runtime's WebGPU, with a hand on every device that is opened through it. */

export interface CapturedGpu {
  /** To be given as the option `gpu`. */
  readonly gpu: GPU;
  /** Devices in the order in which they were opened. */
  readonly devices: GPUDevice[];
}

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
