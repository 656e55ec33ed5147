/** The Backend contract over one device. */
import type {
  Backend,
  BackendInfo,
  BackendLimits,
  Draw,
  FollowingInput,
  ForwardResult,
  KeyMoments,
  KeySketch,
  OverriddenDraw,
  Pruning,
  SequenceInput,
  Uncertainty,
} from "../core/engine/backend.ts";
import { followingBatch, validateBatch, validateBlock } from "../core/engine/backend_checks.ts";
import { checkSketch, momentsOf } from "../core/engine/backend_pruning.ts";
import type { ModelConfig } from "../core/model/config.ts";
import type { RotaryAngles } from "./angles.ts";
import { checked } from "./checked.ts";
import type { Device } from "./device.ts";
import { DeviceGuard } from "./device_guard.ts";
import { checkTimestamps, type KernelTime, timeDispatches } from "./profile.ts";
import { Program } from "./program.ts";
import type { ProgramParts } from "./program_parts.ts";
import {
  destroyMoments,
  destroySketch,
  DIMENSIONS,
  momentBuffers,
  sketchBuffers,
} from "./pruning.ts";
import { type Excerpt, runAndRead } from "./readback.ts";
import { RowQueries } from "./row_queries.ts";
import type { RowDispatches } from "./row_stages.ts";
import { type Step, stepOfBatch, stepResult, submitStep } from "./step.ts";

export class WebGpuBackend implements Backend {
  readonly config: ModelConfig;
  readonly limits: BackendLimits;
  readonly #device: Device;
  readonly #guard: DeviceGuard;
  readonly #angles: RotaryAngles;
  readonly #queries: RowQueries;
  readonly pruning: Pruning = {
    gather: (on, stretch) => this.#gather(on, stretch),
    useSketch: (sketch) => this.#useSketch(sketch),
  };
  #parts: ProgramParts;
  #program: Program;
  /** Tokens whose moments were gathered. */
  #gathered = 0;
  /** How the latest step draws from each of its output rows. */
  #draws: readonly (Draw | undefined)[] = [];
  /** Settles when the latest step has been submitted. */
  #submitted: Promise<unknown> = Promise.resolve();

  constructor(
    device: Device,
    limits: BackendLimits,
    parts: ProgramParts,
    program: Program,
    rows: RowDispatches,
    angles: RotaryAngles,
  ) {
    this.config = parts.config;
    this.limits = limits;
    this.#device = device;
    this.#parts = parts;
    this.#program = program;
    this.#angles = angles;
    this.#guard = new DeviceGuard(device);
    this.#queries = new RowQueries(this.#guard, parts, rows);
  }

  describe(): BackendInfo {
    const { arithmetic, weights, cache, sketch } = this.#parts;
    return {
      kind: "webgpu",
      variant: `${arithmetic} on ${this.#device.name}`,
      threads: 1,
      weightBytes: weights.bytes,
      kvBytes: this.limits.kvBlocks * cache.blockBytes,
      prunes: sketch !== undefined,
    };
  }

  async forward(batch: readonly SequenceInput[], signal?: AbortSignal): Promise<ForwardResult> {
    signal?.throwIfAborted();
    this.#validate(batch);
    return await this.#run(stepOfBatch(batch));
  }

  async follow(batch: readonly FollowingInput[], signal?: AbortSignal): Promise<ForwardResult> {
    signal?.throwIfAborted();
    const known = followingBatch(batch, this.#draws);
    this.#validate(known);
    return await this.#run(stepOfBatch(known, batch.map(({ row }) => row)));
  }

  #validate(batch: readonly SequenceInput[]): void {
    const prunes = this.#parts.sketch !== undefined;
    validateBatch(batch, this.limits, this.config.vocabularySize, prunes);
  }

  async #run(step: Step): Promise<ForwardResult> {
    const { tokens } = step.shape;
    this.#draws = step.input.draws;
    if (tokens === 0) return { rows: [], attention: [] };
    const words = await this.#guard.run(async (gpu) => {
      const read = await this.#inOrder(async () => {
        await this.#program.prepare(step.shape);
        if (this.#parts.moments) this.#gathered += tokens;
        return submitStep(gpu, this.#parts, this.#program, this.#angles, step);
      });
      return new Uint32Array(await read());
    });
    return stepResult(this.#parts, step, words);
  }

  /** Submits a step once those before it are: to compile for one may take longer than for the next. */
  async #inOrder<T>(submit: () => Promise<T>): Promise<T> {
    const submitted = this.#submitted.then(submit);
    this.#submitted = submitted.catch(() => {});
    return await submitted;
  }

  /**
   * Runs a step with each kernel in a pass of its own, for benchmarks.
   *
   * @throws {BackendError} The device has no timestamp queries.
   */
  async profile(batch: readonly SequenceInput[]): Promise<readonly KernelTime[]> {
    checkTimestamps(this.#device.gpu);
    await this.forward(batch);
    const dispatches = this.#program.dispatches(stepOfBatch(batch).shape);
    return await this.#guard.run((gpu) => timeDispatches(gpu, dispatches));
  }

  async logits(row: number): Promise<Float32Array> {
    this.#checkRow(row);
    return await this.#queries.logits(row);
  }

  async logitsOf(row: number, ids: ArrayLike<number>): Promise<Float32Array> {
    this.#checkRow(row);
    return await this.#queries.logitsOf(row, ids);
  }

  async draw(row: number, draw: OverriddenDraw): Promise<number | undefined> {
    this.#checkRow(row);
    return await this.#queries.draw(row, draw);
  }

  async tempered(row: number, temperature: number): Promise<Uncertainty> {
    this.#checkRow(row);
    return await this.#queries.tempered(row, temperature);
  }

  #checkRow(row: number): void {
    const { length: rows } = this.#draws;
    if (Number.isInteger(row) && row >= 0 && row < rows) return;
    throw new RangeError(`Cannot read logits: row is ${row}, the latest step has ${rows}`);
  }

  async copyBlocks(pairs: readonly (readonly [from: number, to: number])[]): Promise<void> {
    for (const block of pairs.flat()) validateBlock(block, this.limits.kvBlocks, "copyBlocks");
    // deno-lint-ignore require-await -- the queue keeps the order, nobody has to wait
    await this.#guard.run(async () => this.#parts.cache.copy(pairs));
  }

  async readBlocks(blocks: readonly number[]): Promise<Uint8Array> {
    for (const block of blocks) validateBlock(block, this.limits.kvBlocks, "readBlocks");
    return new Uint8Array(await this.#read(this.#parts.cache.excerpts(blocks)));
  }

  async writeBlocks(blocks: readonly number[], content: Uint8Array): Promise<void> {
    for (const block of blocks) validateBlock(block, this.limits.kvBlocks, "writeBlocks");
    const expected = blocks.length * this.#parts.cache.blockBytes;
    if (content.length !== expected) {
      throw new RangeError(
        `Cannot write KV blocks: content has ${content.length} bytes, expected are ${expected}`,
      );
    }
    // deno-lint-ignore require-await -- as in copyBlocks
    await this.#guard.run(async () => this.#parts.cache.write(blocks, content));
  }

  async #useSketch(sketch: KeySketch | undefined): Promise<void> {
    const { config, buffers, cache, sketch: old } = this.#parts;
    if (sketch !== undefined) checkSketch(sketch, config, DIMENSIONS);
    await this.#guard.run(async (gpu) => {
      const sizes = { kvBlocks: this.limits.kvBlocks, chosenWords: buffers.chosenWords };
      const made = sketch && await checked(
        gpu,
        "reserve the key sketch",
        () => sketchBuffers(gpu, config, sketch, sizes),
      );
      await this.#rebuild({ sketch: made });
      cache.setCodes(made?.codes ?? [], made?.codeBytes ?? 0);
      if (old) destroySketch(old);
    });
  }

  async #gather(on: boolean, stretch = 1): Promise<KeyMoments | undefined> {
    if (!Number.isSafeInteger(stretch) || stretch < 1) {
      throw new RangeError(`Cannot gather: stretch is ${stretch}, allowed is 1 or more`);
    }
    const { config, buffers, moments: old } = this.#parts;
    const excerpts = on || !old ? [] : old.sums.map((buffer) => ({
      buffer,
      offset: 0,
      size: buffer.size,
    }));
    const sums = excerpts.length > 0 ? new Float32Array(await this.#read(excerpts)) : undefined;
    const gathered = sums && momentsOf(sums, this.#gathered, config);
    await this.#guard.run(async (gpu) => {
      const moments = on ? momentBuffers(gpu, config, buffers.angles.size, stretch) : undefined;
      await this.#rebuild({ moments });
      if (old) destroyMoments(old);
    });
    this.#gathered = 0;
    return gathered;
  }

  /** Binds other buffers, compiling what they need. */
  async #rebuild(
    changed: Pick<ProgramParts, "sketch"> | Pick<ProgramParts, "moments">,
  ): Promise<void> {
    const parts = { ...this.#parts, ...changed };
    this.#program = await Program.create(parts);
    this.#parts = parts;
  }

  // deno-lint-ignore require-await -- the contract is asynchronous
  async dispose(): Promise<void> {
    this.#draws = [];
    this.#guard.fail("the backend was disposed");
  }

  #read(excerpts: readonly Excerpt[]): Promise<ArrayBuffer> {
    return this.#guard.run((gpu) => runAndRead(gpu, excerpts));
  }
}
