/** What pruned attention keeps in GPU memory: a sketch's maps, the keys' codes, gathered moments. */
import type { KeySketch } from "../core/engine/backend.ts";
import type { ModelConfig } from "../core/model/config.ts";
import { momentFloats } from "./kernels/moments.ts";
import { codeBlockBytes } from "./sketch.ts";

export interface SketchBuffers {
  /** Dimensions of a code. */
  readonly dimensions: number;
  /** Of each layer, as `sketch.ts` lays them out. */
  readonly maps: readonly GPUBuffer[];
  readonly codes: readonly GPUBuffer[];
  /** Bytes of a block's codes in one layer. */
  readonly codeBytes: number;
  /** What `select` leaves for `attend`. */
  readonly chosen: GPUBuffer;
}

/** Dimensions of a code that the kernels take: a thread makes eight. */
export const DIMENSIONS: readonly number[] = [8, 16, 24, 32, 40, 48, 56, 64];

export function sketchBuffers(
  gpu: GPUDevice,
  { layers, kvHeads, headSize }: ModelConfig,
  sketch: KeySketch,
  { kvBlocks, chosenWords }: { readonly kvBlocks: number; readonly chosenWords: number },
): SketchBuffers {
  const { dimensions, keyMap, keyOffset, queryMap } = sketch;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  const [map, offsets] = [kvHeads * dimensions * headSize, kvHeads * dimensions];
  const maps = Array.from({ length: layers }, (_, layer) => {
    const own = (values: Float32Array, size: number) =>
      values.subarray(layer * size, (layer + 1) * size);
    const packed = new Float32Array(2 * map + offsets);
    packed.set(own(keyMap, map));
    packed.set(own(keyOffset, offsets), map);
    packed.set(own(queryMap, map), map + offsets);
    const buffer = gpu.createBuffer({ size: packed.byteLength, usage });
    gpu.queue.writeBuffer(buffer, 0, packed);
    return buffer;
  });
  const codeBytes = codeBlockBytes(kvHeads, dimensions);
  const codes = maps.map(() =>
    gpu.createBuffer({ size: kvBlocks * codeBytes, usage: usage | GPUBufferUsage.COPY_SRC })
  );
  const chosen = gpu.createBuffer({ size: 4 * chosenWords, usage });
  return { dimensions, maps, codes, codeBytes, chosen };
}

export function destroySketch({ maps, codes, chosen }: SketchBuffers): void {
  for (const buffer of [...maps, ...codes, chosen]) buffer.destroy();
}

export interface MomentBuffers {
  /** Of each layer, as `kernels/moments.ts` says. */
  readonly sums: readonly GPUBuffer[];
  /** The rotary angles at stretched positions. */
  readonly angles: GPUBuffer;
  readonly stretch: number;
}

/** @param angleBytes Of a step's angles. */
export function momentBuffers(
  gpu: GPUDevice,
  { layers, kvHeads, headSize }: ModelConfig,
  angleBytes: number,
  stretch: number,
): MomentBuffers {
  const usage = GPUBufferUsage.STORAGE;
  const size = 4 * kvHeads * momentFloats(headSize);
  const sums = Array.from(
    { length: layers },
    () => gpu.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_SRC }),
  );
  const angles = gpu.createBuffer({ size: angleBytes, usage: usage | GPUBufferUsage.COPY_DST });
  return { sums, angles, stretch };
}

export function destroyMoments({ sums, angles }: MomentBuffers): void {
  for (const buffer of [...sums, angles]) buffer.destroy();
}
