/** The paged KV cache in GPU memory, a buffer a layer, and the moving of blocks. */
import { blockBytes, type KvLayout } from "./kv_layout.ts";
import type { Excerpt } from "./readback.ts";

export class KvCache {
  readonly layout: KvLayout;
  /** One buffer a layer, laid out as `kv_layout.ts` says. */
  readonly layers: readonly GPUBuffer[];
  readonly #gpu: GPUDevice;
  /** A block of every layer, for copies within a buffer, which WebGPU has not. */
  readonly #aside: GPUBuffer;

  constructor(gpu: GPUDevice, layout: KvLayout, layers: number, blocks: number) {
    this.#gpu = gpu;
    this.layout = layout;
    const usage = GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const size = blocks * blockBytes(layout);
    this.layers = Array.from({ length: layers }, (_, layer) =>
      gpu.createBuffer({
        label: `KV cache of layer ${layer}`,
        size,
        usage: usage | GPUBufferUsage.STORAGE,
      }));
    this.#aside = gpu.createBuffer({ size: this.blockBytes, usage });
  }

  /** Bytes of a block over all layers. */
  get blockBytes(): number {
    return this.layers.length * blockBytes(this.layout);
  }

  /** Copies blocks, `[from, to]`, in order. */
  copy(pairs: readonly (readonly [from: number, to: number])[]): void {
    const size = blockBytes(this.layout);
    const encoder = this.#gpu.createCommandEncoder();
    for (const [from, to] of pairs) {
      for (const [i, layer] of this.layers.entries()) {
        encoder.copyBufferToBuffer(layer, from * size, this.#aside, i * size, size);
      }
      for (const [i, layer] of this.layers.entries()) {
        encoder.copyBufferToBuffer(this.#aside, i * size, layer, to * size, size);
      }
    }
    this.#gpu.queue.submit([encoder.finish()]);
  }

  /** Where blocks lie: all layers of one after the other. */
  excerpts(blocks: readonly number[]): Excerpt[] {
    const size = blockBytes(this.layout);
    return blocks.flatMap((block) =>
      this.layers.map((buffer) => ({ buffer, offset: block * size, size }))
    );
  }

  /** Puts back what lay where `excerpts` says. */
  write(blocks: readonly number[], content: Uint8Array): void {
    let at = 0;
    for (const { buffer, offset, size } of this.excerpts(blocks)) {
      this.#gpu.queue.writeBuffer(buffer, offset, content as Uint8Array<ArrayBuffer>, at, size);
      at += size;
    }
  }
}
