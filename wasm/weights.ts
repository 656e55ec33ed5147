/**
 * Streams a model's tensors into the core. Bytes pass through two buffers of about a MiB: while the
 * core repacks one, the next is being read. No second copy of the model ever exists.
 */
import type { ModelFiles, TensorInfo } from "../core/model/tensors.ts";
import { TENSOR_TYPES } from "../core/model/tensors.ts";
import { ModelError } from "../core/errors.ts";
import type { Kernel } from "./kernel.ts";

/** Bytes read at a time, unless four rows are longer. */
const CHUNK_BYTES = 1 << 20;

/** Slots of the core's tensors, by their GGUF name without `blk.N.` and `.weight`. */
const SLOTS: Readonly<Record<string, number>> = {
  token_embd: 0,
  output_norm: 1,
  output: 2,
  rope_freqs: 3,
  attn_norm: 4,
  ffn_norm: 5,
  attn_q: 6,
  attn_k: 7,
  attn_v: 8,
  attn_output: 9,
  ffn_gate: 10,
  ffn_up: 11,
  ffn_down: 12,
};

interface Chunk {
  readonly tensor: TensorInfo;
  readonly firstRow: number;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Loads every tensor that the core knows.
 *
 * @param onProgress Called with the bytes loaded so far and the bytes in all.
 * @throws {ModelError} Reading failed, a scale is not finite, or the weights do not fit the memory.
 */
export async function loadWeights(
  kernel: Kernel,
  files: ModelFiles,
  onProgress?: (loaded: number, total: number) => void,
): Promise<void> {
  const chunks = [...files.tensors.values()].flatMap((tensor) => [...chunksOf(tensor)]);
  const total = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
  const largest = chunks.reduce((most, chunk) => Math.max(most, chunk.bytes), 0);
  const buffers = [new Uint8Array(largest), new Uint8Array(largest)];
  const read = async (index: number) => {
    const chunk = chunks[index];
    const buffer = buffers[index % 2];
    if (chunk === undefined || buffer === undefined) return new Uint8Array(0);
    const target = buffer.subarray(0, chunk.bytes);
    await files.sources[chunk.tensor.source]?.read(chunk.offset, target);
    return target;
  };

  let loaded = 0;
  let pending = read(0);
  for (const [index, chunk] of chunks.entries()) {
    const bytes = await pending;
    pending = read(index + 1);
    pending.catch(() => {}); // it is awaited in the next round, or an earlier error wins
    if (chunk.firstRow === 0) beginTensor(kernel, chunk.tensor);
    if (!kernel.loadRows(chunk.firstRow, bytes)) {
      const { name } = chunk.tensor;
      throw new ModelError(name, `Cannot load ${name}: a scale in it is not finite, or too large`);
    }
    loaded += chunk.bytes;
    onProgress?.(loaded, total);
  }
}

function beginTensor(kernel: Kernel, tensor: TensorInfo): void {
  const { slot, layer } = slotOf(tensor.name);
  const format = TENSOR_TYPES[tensor.type].id;
  if (!kernel.beginTensor(slot, layer, format, tensor.rows, tensor.columns)) {
    throw new ModelError(tensor.name, `Cannot load ${tensor.name}: out of WASM memory (4 GiB)`);
  }
}

function slotOf(name: string): { slot: number; layer: number } {
  const match = /^(?:blk\.(\d+)\.)?(\w+)\.weight$/.exec(name);
  return { slot: SLOTS[match?.[2] ?? ""] ?? -1, layer: Number(match?.[1] ?? 0) };
}

/** A tensor in pieces of whole rows, each starting at a multiple of four rows. */
function* chunksOf(tensor: TensorInfo): Generator<Chunk> {
  if (slotOf(tensor.name).slot < 0) return;
  const rowBytes = tensor.byteLength / tensor.rows;
  const rows = Math.max(4, Math.floor(CHUNK_BYTES / rowBytes / 4) * 4);
  for (let firstRow = 0; firstRow < tensor.rows; firstRow += rows) {
    const bytes = Math.min(rows, tensor.rows - firstRow) * rowBytes;
    yield { tensor, firstRow, offset: tensor.offset + firstRow * rowBytes, bytes };
  }
}
