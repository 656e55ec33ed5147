/**
 * A model with its matrices decoded to halves. All backends multiply halves in floats, where quantised
 * matrices have some round activations to 8 bits: so what differs here is the order of sums.
 */
import { MemorySource } from "../../core/model/memory_source.ts";
import type { ModelFiles, TensorInfo } from "../../core/model/tensors.ts";
import { dequantise } from "./dequantise.ts";
import { concat } from "./gguf_writer.ts";

/** Reads the whole model; its sources may be closed then. */
export async function inHalves({ config, tensors, sources }: ModelFiles): Promise<ModelFiles> {
  const decoded = new Map<string, TensorInfo>();
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (const [name, tensor] of tensors) {
    const bytes = new Uint8Array(tensor.byteLength);
    await sources[tensor.source]!.read(tensor.offset, bytes);
    const isVector = tensor.rows === 1;
    const part = isVector ? bytes : halves(dequantise(tensor.type, bytes));
    const type = isVector ? tensor.type : "F16";
    decoded.set(name, { ...tensor, type, source: 0, offset, byteLength: part.length });
    parts.push(part);
    offset += part.length;
  }
  return { config, tensors: decoded, sources: [new MemorySource("in halves", concat(parts))] };
}

const halves = (values: Float32Array) => new Uint8Array(new Float16Array(values).buffer);
