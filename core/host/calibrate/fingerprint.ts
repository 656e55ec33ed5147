/** Tells models apart by what their queries and keys come from, without reading them whole. */
import { ModelError } from "../../errors.ts";
import type { ModelFiles, TensorInfo } from "../../model/tensors.ts";

/** Bytes read of a tensor. */
const SAMPLE = 1 << 16;

/**
 * A hash of a model's shape, of its tensor table, and of samples of its embedding and of the queries'
 * and keys' weights in the first, middle and last layer.
 *
 * @returns SHA-256, in hexadecimal.
 * @throws {ModelError} The model's files cannot be read.
 */
export async function modelFingerprint({ config, tensors, sources }: ModelFiles): Promise<string> {
  const table = [...tensors.values()].map(({ name, type, columns, rows }) =>
    `${name} ${type} ${columns} ${rows}`
  );
  const header = new TextEncoder().encode(JSON.stringify([config, table.sort()]));
  const layers = [0, config.layers >> 1, config.layers - 1];
  const names = ["token_embd.weight"].concat(
    layers.flatMap((layer) => [`blk.${layer}.attn_q.weight`, `blk.${layer}.attn_k.weight`]),
  );
  const parts: Uint8Array<ArrayBuffer>[] = [header];
  for (const name of names) {
    const tensor = tensors.get(name);
    if (tensor === undefined) {
      throw new ModelError(name, `Cannot identify model: no tensor ${name}`);
    }
    parts.push(await sample(tensor, sources));
  }
  const digest = await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function sample(
  { name, source, offset, byteLength }: TensorInfo,
  sources: ModelFiles["sources"],
): Promise<Uint8Array<ArrayBuffer>> {
  const from = sources[source];
  if (from === undefined) throw new ModelError(name, `Cannot identify model: ${name} has no file`);
  const bytes = new Uint8Array(Math.min(SAMPLE, byteLength));
  await from.read(offset, bytes);
  return bytes;
}
