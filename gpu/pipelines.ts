/** Compiles kernels once, as many side by side as are asked for, and binds buffers to them. */
import { checked } from "./checked.ts";
import { type Kernel, shaderOf } from "./kernel.ts";

/** A kernel that can be dispatched. */
export interface Compiled {
  readonly kernel: Kernel;
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
}

/** What a binding is bound to: a whole buffer, or a part of one. */
export type Bound = GPUBuffer | GPUBufferBinding;

const BINDING_TYPES = {
  read: "read-only-storage",
  write: "storage",
  uniform: "uniform",
} as const;

export class Pipelines {
  readonly #gpu: GPUDevice;
  readonly #compiled = new Map<string, Promise<Compiled>>();
  /** Kernels bound alike share a layout, so that they share bind groups as well. */
  readonly #layouts = new Map<string, GPUBindGroupLayout>();

  constructor(gpu: GPUDevice) {
    this.#gpu = gpu;
  }

  /** @throws {BackendError} The device refuses the shader. */
  compile(kernel: Kernel): Promise<Compiled> {
    const known = this.#compiled.get(kernel.name);
    if (known !== undefined) return known;
    const compiled = this.#compile(kernel);
    this.#compiled.set(kernel.name, compiled);
    return compiled;
  }

  async #compile(kernel: Kernel): Promise<Compiled> {
    const { name } = kernel;
    return await checked(this.#gpu, `compile kernel ${name}`, async () => {
      const layout = this.#layoutOf(kernel);
      const module = this.#gpu.createShaderModule({ label: name, code: shaderOf(kernel) });
      const pipeline = await this.#gpu.createComputePipelineAsync({
        label: name,
        layout: this.#gpu.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module, entryPoint: "main" },
      });
      return { kernel, pipeline, layout };
    }, "at once");
  }

  #layoutOf({ bindings }: Kernel): GPUBindGroupLayout {
    const key = bindings.map(({ access }) => access).join();
    const known = this.#layouts.get(key);
    if (known !== undefined) return known;
    const layout = this.#gpu.createBindGroupLayout({
      entries: bindings.map(({ access }, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: BINDING_TYPES[access] },
      })),
    });
    this.#layouts.set(key, layout);
    return layout;
  }

  /** @param bound What each of the kernel's bindings is bound to, by name. */
  bind({ kernel, layout }: Compiled, bound: Readonly<Record<string, Bound>>): GPUBindGroup {
    return this.#gpu.createBindGroup({
      label: kernel.name,
      layout,
      entries: kernel.bindings.map(({ name }, binding) => {
        const resource = bound[name];
        if (resource === undefined) {
          throw new TypeError(`Cannot bind kernel ${kernel.name}: ${name} is missing`);
        }
        return { binding, resource: "buffer" in resource ? resource : { buffer: resource } };
      }),
    });
  }
}
