/**
 * A model's tensors in GPU memory. Rows stream from the file straight into mapped buffers, packed on
 * the way. Matrices that share their input are joined, so that one dispatch multiplies them all; one
 * that is larger than a binding is cut into parts by rows, each with a dispatch of its own.
 */
import { ModelError } from "../core/errors.ts";
import type { ModelFiles, TensorInfo } from "../core/model/tensors.ts";
import { checked } from "./checked.ts";
import {
  type Linear,
  mappedBuffer,
  type MatrixPart,
  MatrixWriter,
  uniformBuffer,
} from "./matrix.ts";

export interface LayerWeights {
  readonly attentionNorm: GPUBuffer;
  /** Queries, keys, values. */
  readonly qkv: Linear;
  readonly attentionOutput: Linear;
  readonly feedForwardNorm: GPUBuffer;
  /** Rows of gate and up projection by turns. */
  readonly gateUp: Linear;
  readonly down: Linear;
}

export interface ModelWeights {
  readonly embedding: Linear;
  readonly layers: readonly LayerWeights[];
  readonly outputNorm: GPUBuffer;
  readonly output: Linear;
  /** What RoPE frequencies are divided by, where the model says. */
  readonly ropeFactors: Float32Array | undefined;
  /** Bytes of all tensors as they lie in GPU memory. */
  readonly bytes: number;
}

export interface WeightsOptions {
  readonly files: ModelFiles;
  /** Most bytes of a buffer that a kernel sees. */
  readonly bindingBytes: number;
  readonly onProgress?: ((loaded: number, total: number) => void) | undefined;
}

/** Bytes read at a time, unless a row is longer. */
const CHUNK_BYTES = 1 << 20;

/**
 * @throws {ModelError} Reading failed, or a tensor cannot be laid out for the device.
 * @throws {BackendError} The device's memory is exhausted.
 */
export async function loadWeights(gpu: GPUDevice, options: WeightsOptions): Promise<ModelWeights> {
  return await checked(gpu, "load the weights", () => new Loader(gpu, options).load());
}

class Loader {
  readonly #gpu: GPUDevice;
  readonly #options: WeightsOptions;
  /** Bytes of the file's tensors: all, and those read so far. */
  readonly #total: number;
  #loaded = 0;
  /** Bytes in GPU memory. */
  #bytes = 0;

  constructor(gpu: GPUDevice, options: WeightsOptions) {
    this.#gpu = gpu;
    this.#options = options;
    const tensors = [...options.files.tensors.values()];
    this.#total = tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  async load(): Promise<ModelWeights> {
    const { config, tensors } = this.#options.files;
    const embedding = await this.#stacked(["token_embd"]);
    const layers: LayerWeights[] = [];
    for (let layer = 0; layer < config.layers; layer++) {
      const name = (part: string) => `blk.${layer}.${part}`;
      layers.push({
        attentionNorm: await this.#vector(name("attn_norm")),
        qkv: await this.#stacked([name("attn_q"), name("attn_k"), name("attn_v")]),
        attentionOutput: await this.#stacked([name("attn_output")]),
        feedForwardNorm: await this.#vector(name("ffn_norm")),
        gateUp: await this.#alternating(name("ffn_gate"), name("ffn_up")),
        down: await this.#stacked([name("ffn_down")]),
      });
    }
    const outputNorm = await this.#vector("output_norm");
    const output = tensors.has("output.weight") ? await this.#stacked(["output"]) : embedding;
    const ropeFactors = tensors.has("rope_freqs.weight")
      ? await this.#floats(this.#tensor("rope_freqs"))
      : undefined;
    return { embedding, layers, outputNorm, output, ropeFactors, bytes: this.#bytes };
  }

  #tensor(name: string): TensorInfo {
    const tensor = this.#options.files.tensors.get(`${name}.weight`);
    if (tensor === undefined) throw new ModelError(name, `Cannot load ${name}: it is missing`);
    return tensor;
  }

  /** Matrices one below the other; neighbours of one type share buffers. */
  async #stacked(names: readonly string[]): Promise<Linear> {
    const runs: TensorInfo[][] = [];
    for (const tensor of names.map((name) => this.#tensor(name))) {
      const run = runs.at(-1);
      if (run?.[0]?.type === tensor.type) run.push(tensor);
      else runs.push([tensor]);
    }
    const parts: MatrixPart[] = [];
    let first = 0;
    for (const run of runs) {
      const starts = run.map((_, i) => sumOfRows(run.slice(0, i)));
      parts.push(...await this.#matrix(run, first, (tensor, row) => (starts[tensor] ?? 0) + row));
      first += sumOfRows(run);
    }
    return this.#linear(runs.flat(), parts, first);
  }

  /** Rows of two matrices by turns, so that one thread has a pair of them. */
  async #alternating(even: string, odd: string): Promise<Linear> {
    const [gate, up] = [this.#tensor(even), this.#tensor(odd)];
    if (gate.type !== up.type) {
      throw new ModelError(
        up.name,
        `Cannot load ${up.name} on WebGPU: its type is ${up.type}, ` +
          `allowed is ${gate.type}, the type of ${gate.name}`,
      );
    }
    const parts = await this.#matrix([gate, up], 0, (tensor, row) => 2 * row + tensor);
    return this.#linear([gate], parts, gate.rows);
  }

  #linear(tensors: readonly TensorInfo[], parts: readonly MatrixPart[], width: number): Linear {
    const columns = tensors[0]?.columns ?? 0;
    return { columns, parts, width: uniformBuffer(this.#gpu, [width]) };
  }

  /** @param place The row that a tensor's row becomes. */
  async #matrix(
    tensors: readonly TensorInfo[],
    first: number,
    place: (tensor: number, row: number) => number,
  ): Promise<readonly MatrixPart[]> {
    const { name = "", type = "F32", columns = 0 } = tensors[0] ?? {};
    const shape = { name, type, columns, rows: sumOfRows(tensors), first };
    const writer = new MatrixWriter(this.#gpu, shape, this.#options.bindingBytes);
    for (const [index, tensor] of tensors.entries()) {
      const rowHalves = tensor.byteLength / tensor.rows / 2;
      for await (const { row, halves } of this.#rowChunks(tensor)) {
        for (let at = 0; at < halves.length; at += rowHalves) {
          const own = halves.subarray(at, at + rowHalves);
          writer.write(place(index, row + at / rowHalves), own);
        }
      }
    }
    const parts = writer.finish();
    for (const { quants, scales } of parts) this.#bytes += quants.size + scales.size;
    return parts;
  }

  /** A tensor's bytes in pieces of whole rows. */
  async *#rowChunks(tensor: TensorInfo) {
    const rowBytes = tensor.byteLength / tensor.rows;
    const rows = Math.max(1, Math.floor(CHUNK_BYTES / rowBytes));
    const buffer = new Uint8Array(Math.min(rows, tensor.rows) * rowBytes);
    for (let row = 0; row < tensor.rows; row += rows) {
      const bytes = buffer.subarray(0, Math.min(rows, tensor.rows - row) * rowBytes);
      await this.#read(tensor, tensor.offset + row * rowBytes, bytes);
      yield { row, halves: new Uint16Array(buffer.buffer, 0, bytes.length / 2) };
    }
  }

  async #read(tensor: TensorInfo, offset: number, target: Uint8Array): Promise<void> {
    const { files, onProgress } = this.#options;
    await files.sources[tensor.source]?.read(offset, target);
    this.#loaded += target.length;
    onProgress?.(this.#loaded, this.#total);
  }

  async #floats(tensor: TensorInfo): Promise<Float32Array<ArrayBuffer>> {
    const bytes = new Uint8Array(tensor.byteLength);
    await this.#read(tensor, tensor.offset, bytes);
    return new Float32Array(bytes.buffer);
  }

  async #vector(name: string): Promise<GPUBuffer> {
    const values = await this.#floats(this.#tensor(name));
    const { buffer, range } = mappedBuffer(this.#gpu, values.byteLength, GPUBufferUsage.STORAGE);
    new Float32Array(range).set(values);
    buffer.unmap();
    this.#bytes += buffer.size;
    return buffer;
  }
}

const sumOfRows = (tensors: readonly TensorInfo[]): number =>
  tensors.reduce((sum, { rows }) => sum + rows, 0);
