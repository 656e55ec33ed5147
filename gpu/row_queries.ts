/** What is asked of single rows once a step has left them: logits, a token, another temperature. */
import type { OverriddenDraw, Uncertainty } from "../core/engine/backend.ts";
import { validateTokens } from "../core/engine/backend_checks.ts";
import type { DeviceGuard } from "./device_guard.ts";
import { record } from "./dispatch.ts";
import { drawWords } from "./kernels/draw.ts";
import type { ProgramParts } from "./program_parts.ts";
import { type Excerpt, runAndRead } from "./readback.ts";
import type { RowDispatches } from "./row_stages.ts";
import { drawnOf, uncertaintyOf } from "./row_statistics.ts";
import type { StepBuffers } from "./step_buffers.ts";

/** Ids up to which single logits are copied one by one, rather than collected by a kernel. */
const FEW_IDS = 64;

/** Its methods are those of `Backend`, for rows that are there. */
export class RowQueries {
  readonly #guard: DeviceGuard;
  readonly #buffers: StepBuffers;
  readonly #vocabularySize: number;
  readonly #topK: number;
  readonly #dispatches: RowDispatches;

  constructor(guard: DeviceGuard, parts: ProgramParts, dispatches: RowDispatches) {
    this.#guard = guard;
    this.#buffers = parts.buffers;
    this.#vocabularySize = parts.config.vocabularySize;
    this.#topK = parts.topK;
    this.#dispatches = dispatches;
  }

  async logits(row: number): Promise<Float32Array> {
    const size = 4 * this.#vocabularySize;
    return await this.#copied([{ buffer: this.#buffers.logits, offset: row * size, size }]);
  }

  async logitsOf(row: number, ids: ArrayLike<number>): Promise<Float32Array> {
    const vocabulary = this.#vocabularySize;
    validateTokens(ids, vocabulary, "logitsOf");
    if (ids.length >= vocabulary) {
      const logits = await this.logits(row);
      return Float32Array.from(ids, (id) => logits[id] ?? NaN);
    }
    if (ids.length > FEW_IDS) return await this.#pick(row, ids);
    const { logits: buffer } = this.#buffers;
    const first = row * vocabulary;
    return await this.#copied(
      Array.from(ids, (id) => ({ buffer, offset: 4 * (first + id), size: 4 })),
    );
  }

  async draw(row: number, draw: OverriddenDraw): Promise<number | undefined> {
    const { ids, logits } = draw.overrides;
    validateTokens(ids, this.#vocabularySize, "draw");
    const { rowSummary: buffer, rowDraw, overrides } = this.#buffers;
    const words = await this.#guard.run((gpu) => {
      if (ids.length > 0) gpu.queue.writeBuffer(overrides, 0, Float32Array.from(logits));
      gpu.queue.writeBuffer(rowDraw, 0, drawWords([draw]));
      return runAndRead(gpu, [{ buffer, offset: 0, size: buffer.size }], (encoder) => {
        this.#setAside(gpu, encoder, row, ids);
        record(encoder, this.#dispatches.draw(ids.length));
      });
    });
    return drawnOf(new Uint32Array(words), 0, this.#topK)?.token;
  }

  async tempered(row: number, temperature: number): Promise<Uncertainty> {
    if (!(temperature > 0 && temperature < Infinity)) {
      throw new RangeError(`Cannot temper logits: temperature is ${temperature}, must be above 0`);
    }
    const view = new DataView(new ArrayBuffer(8));
    view.setUint32(0, row, true);
    view.setFloat32(4, 1 / temperature, true);
    const { temperedView, uncertainty: buffer } = this.#buffers;
    const sums = await this.#guard.run((gpu) => {
      gpu.queue.writeBuffer(temperedView, 0, view.buffer);
      return runAndRead(gpu, [{ buffer, offset: 0, size: 16 }], (encoder) => {
        record(encoder, this.#dispatches.tempered);
      });
    });
    const [, z = NaN, a = NaN, b = NaN] = new Float32Array(sums);
    return uncertaintyOf(z, a, b);
  }

  async #copied(excerpts: readonly Excerpt[]): Promise<Float32Array> {
    return new Float32Array(await this.#guard.run((gpu) => runAndRead(gpu, excerpts)));
  }

  /** Single logits of a row, collected on the GPU. */
  async #pick(row: number, ids: ArrayLike<number>): Promise<Float32Array> {
    const excerpt = { buffer: this.#buffers.picked, offset: 0, size: 4 * ids.length };
    const logits = await this.#guard.run((gpu) =>
      runAndRead(gpu, [excerpt], (encoder) => {
        this.#setAside(gpu, encoder, row, ids);
        record(encoder, this.#dispatches.pick(ids.length));
      })
    );
    return new Float32Array(logits);
  }

  /** Records a copy of a row to a place of its own, and hands over ids in it. */
  #setAside(
    { queue }: GPUDevice,
    encoder: GPUCommandEncoder,
    row: number,
    ids: ArrayLike<number>,
  ): void {
    const { logits, row: copy, idCount, ids: given } = this.#buffers;
    const size = 4 * this.#vocabularySize;
    encoder.copyBufferToBuffer(logits, row * size, copy, 0, size);
    if (ids.length === 0) return;
    queue.writeBuffer(idCount, 0, Uint32Array.of(ids.length));
    queue.writeBuffer(given, 0, Uint32Array.from(ids));
  }
}
