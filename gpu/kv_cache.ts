/** The paged KV cache in GPU memory, a buffer a layer, and the moving of blocks. */
import { blockBytes, type KvLayout } from "./kv_layout.ts";
import type { Excerpt } from "./readback.ts";

/** A buffer with a part for each block. */
interface Stream {
  readonly buffer: GPUBuffer;
  /** Bytes of a block in it. */
  readonly size: number;
}

/** Looked up when it is needed: a runtime without WebGPU has no such names. */
const copied = () => GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;

export class KvCache {
  readonly layout: KvLayout;
  /** One buffer a layer, laid out as `kv_layout.ts` says. */
  readonly layers: readonly GPUBuffer[];
  readonly #gpu: GPUDevice;
  /** All that moves with a block: keys and values of each layer, and their codes. */
  #streams: readonly Stream[];
  /** Room for a block, for copies within a buffer, which WebGPU has not. */
  #aside: GPUBuffer;

  constructor(gpu: GPUDevice, layout: KvLayout, layers: number, blocks: number) {
    this.#gpu = gpu;
    this.layout = layout;
    const size = blockBytes(layout);
    this.layers = Array.from({ length: layers }, (_, layer) =>
      gpu.createBuffer({
        label: `KV cache of layer ${layer}`,
        size: blocks * size,
        usage: copied() | GPUBufferUsage.STORAGE,
      }));
    this.#streams = this.layers.map((buffer) => ({ buffer, size }));
    this.#aside = gpu.createBuffer({ size: this.blockBytes, usage: copied() });
  }

  /** Bytes of a block over all layers, codes included. */
  get blockBytes(): number {
    return this.#streams.reduce((sum, { size }) => sum + size, 0);
  }

  /** Lets the codes of each layer, so many bytes a block, move with their blocks. */
  setCodes(codes: readonly GPUBuffer[], size: number): void {
    const records = this.#streams.slice(0, this.layers.length);
    this.#streams = [...records, ...codes.map((buffer) => ({ buffer, size }))];
    this.#aside.destroy();
    this.#aside = this.#gpu.createBuffer({ size: this.blockBytes, usage: copied() });
  }

  /** Copies blocks, `[from, to]`, in order. */
  copy(pairs: readonly (readonly [from: number, to: number])[]): void {
    const encoder = this.#gpu.createCommandEncoder();
    for (const [from, to] of pairs) {
      let at = 0;
      for (const { buffer, size } of this.#streams) {
        encoder.copyBufferToBuffer(buffer, from * size, this.#aside, at, size);
        encoder.copyBufferToBuffer(this.#aside, at, buffer, to * size, size);
        at += size;
      }
    }
    this.#gpu.queue.submit([encoder.finish()]);
  }

  /** Where blocks lie: all streams of one after the other. */
  excerpts(blocks: readonly number[]): Excerpt[] {
    return blocks.flatMap((block) =>
      this.#streams.map(({ buffer, size }) => ({ buffer, offset: block * size, size }))
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
