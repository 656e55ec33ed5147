/** Packed matrices in GPU memory, written row by row while their tensors stream in. */
import { ModelError } from "../core/errors.ts";
import type { TensorType } from "../core/model/tensors.ts";
import { quantWords, scaleWords } from "./packed.ts";
import { repack } from "./repack.ts";

/** Rows of a matrix that lie in one pair of buffers. */
export interface MatrixPart {
  readonly type: TensorType;
  readonly rows: number;
  readonly quants: GPUBuffer;
  readonly scales: GPUBuffer;
  /** Uniform: the first row, counted over the whole linear, and how many there are. */
  readonly part: GPUBuffer;
}

/** What multiplies one input: one matrix, or several whose rows follow each other. */
export interface Linear {
  readonly columns: number;
  readonly parts: readonly MatrixPart[];
  /** Uniform: elements of an output row. */
  readonly width: GPUBuffer;
}

export interface MatrixShape {
  /** Of the first tensor, for messages. */
  readonly name: string;
  readonly type: TensorType;
  readonly columns: number;
  readonly rows: number;
  /** The row of the linear at which the matrix begins. */
  readonly first: number;
}

/** A buffer that is written once, before the device first reads it. */
export function uniformBuffer(gpu: GPUDevice, words: readonly number[]): GPUBuffer {
  const { buffer, range } = mappedBuffer(gpu, 4 * words.length, GPUBufferUsage.UNIFORM);
  new Uint32Array(range).set(words);
  buffer.unmap();
  return buffer;
}

export function mappedBuffer(gpu: GPUDevice, bytes: number, usage: GPUBufferUsageFlags) {
  const size = Math.max(16, Math.ceil(bytes / 4) * 4);
  const buffer = gpu.createBuffer({ size, usage, mappedAtCreation: true });
  return { buffer, range: buffer.getMappedRange() };
}

interface OpenPart {
  readonly part: MatrixPart;
  /** Rows of the matrix before this part. */
  readonly before: number;
  readonly quants: Uint16Array;
  readonly scales: Uint16Array;
}

/** Takes a matrix's rows as they lie in the file, and cuts it where a binding ends. */
export class MatrixWriter {
  readonly #shape: MatrixShape;
  readonly #parts: OpenPart[];
  /** Rows of a part, but for the last; even, so that pairs stay together. */
  readonly #most: number;

  /** @throws {ModelError} A pair of rows exceeds a binding. */
  constructor(gpu: GPUDevice, shape: MatrixShape, bindingBytes: number) {
    const { name, type, columns, rows, first } = shape;
    const pairBytes = 8 * quantWords(type, columns);
    if (pairBytes > bindingBytes) {
      throw new ModelError(
        name,
        `Cannot load ${name} on WebGPU: two of its rows have ${pairBytes} bytes, ` +
          `allowed are ${bindingBytes}, this device's largest binding`,
      );
    }
    this.#shape = shape;
    this.#most = 2 * Math.floor(bindingBytes / pairBytes);
    this.#parts = [];
    for (let before = 0; before < rows; before += this.#most) {
      const count = Math.min(this.#most, rows - before), elements = count * columns;
      const quants = mappedBuffer(gpu, 4 * quantWords(type, elements), GPUBufferUsage.STORAGE);
      const scales = mappedBuffer(gpu, 4 * scaleWords(type, elements), GPUBufferUsage.STORAGE);
      const part = {
        ...{ type, rows: count, quants: quants.buffer, scales: scales.buffer },
        part: uniformBuffer(gpu, [first + before, count]),
      };
      const views = [quants.range, scales.range].map((range) => new Uint16Array(range));
      const [ofQuants = new Uint16Array(), ofScales = new Uint16Array()] = views;
      this.#parts.push({ part, before, quants: ofQuants, scales: ofScales });
    }
  }

  /** @param halves The file's bytes of a row. */
  write(row: number, halves: Uint16Array): void {
    const { type, columns } = this.#shape;
    const target = this.#parts[Math.floor(row / this.#most)];
    if (target !== undefined) {
      repack(type, halves, columns, target, (row - target.before) * columns);
    }
  }

  /** Hands the buffers to the device. */
  finish(): readonly MatrixPart[] {
    return this.#parts.map(({ part }) => {
      part.quants.unmap();
      part.scales.unmap();
      return part;
    });
  }
}
