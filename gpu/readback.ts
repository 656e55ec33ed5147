/** Reads GPU memory back, and the times of passes. */

/** What is to be copied out of a buffer. */
export interface Excerpt {
  readonly buffer: GPUBuffer;
  /** Both in bytes, multiples of four. */
  readonly offset: number;
  readonly size: number;
}

/**
 * Records copies into a buffer of their own.
 *
 * @returns A function that, once the commands were submitted, waits for the bytes.
 */
export function readback(
  gpu: GPUDevice,
  encoder: GPUCommandEncoder,
  excerpts: readonly Excerpt[],
): () => Promise<ArrayBuffer> {
  const size = excerpts.reduce((sum, excerpt) => sum + excerpt.size, 0);
  const staging = gpu.createBuffer({
    size: Math.max(4, size),
    usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
  });
  let at = 0;
  for (const { buffer, offset, size } of excerpts) {
    encoder.copyBufferToBuffer(buffer, offset, staging, at, size);
    at += size;
  }
  return async () => {
    try {
      await staging.mapAsync(GPUMapMode.READ);
      return staging.getMappedRange().slice(0, size);
    } finally {
      staging.destroy();
    }
  };
}

/**
 * Submits commands, and waits for what they leave.
 *
 * @param commands Records what runs before the bytes are copied.
 */
export async function runAndRead(
  gpu: GPUDevice,
  excerpts: readonly Excerpt[],
  commands: (encoder: GPUCommandEncoder) => void = () => {},
): Promise<ArrayBuffer> {
  const encoder = gpu.createCommandEncoder();
  commands(encoder);
  const read = readback(gpu, encoder, excerpts);
  gpu.queue.submit([encoder.finish()]);
  return await read();
}
