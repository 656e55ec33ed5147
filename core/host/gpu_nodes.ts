/**
 * Whether a Linux machine can have a GPU, told by its device nodes. Asking WebGPU instead loads every
 * Vulkan driver into the process, llvmpipe's compiler among them, to learn that there is none.
 */

/** Nodes of drivers that compute; `card0` alone is a screen. */
const NODES: Readonly<Record<string, RegExp>> = {
  // The kernel's own drivers; NVIDIA's, also in containers and on Tegra; WSL; AMD's compute; Arm;
  // Qualcomm.
  "/dev": /^(nvidia\d+|nvidiactl|nvhost-gpu|nvgpu|dxg|kfd|mali\d*|kgsl-3d0)$/,
  "/dev/dri": /^renderD\d+$/,
};

/** The parts of a runtime that this file needs, any of which browsers and edge hosts lack. */
export interface NodeHost {
  /** `process.platform`. */
  readonly platform: string | undefined;
  /** The names in a folder. */
  readonly list: (folder: string) => Promise<readonly string[]>;
}

const HOST: NodeHost = {
  platform: (globalThis as { readonly process?: { readonly platform?: string } }).process?.platform,
  list: async (folder) => await (await import("node:fs/promises")).readdir(folder),
};

/** `false` only where it is certain: elsewhere than on Linux, and where `/dev` is hidden, it is not. */
export async function mayHaveGpu({ platform, list }: NodeHost = HOST): Promise<boolean> {
  if (platform !== "linux") return true;
  const found = Object.entries(NODES).map(async ([folder, pattern]) => {
    try {
      return (await list(folder)).some((name) => pattern.test(name));
    } catch (error) {
      return (error as { readonly code?: unknown }).code !== "ENOENT";
    }
  });
  return (await Promise.all(found)).includes(true);
}
