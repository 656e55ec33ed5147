/**
 * Which tensors a Llama-architecture model consists of. A tensor too many is as bad as one too few:
 * a bias or a fused projection that nobody applies gives fluent nonsense.
 */
import { ModelError } from "../errors.ts";
import type { ModelConfig } from "./config.ts";
import type { TensorInfo } from "./tensors.ts";

/** Shape in GGUF's order: elements of a row, then rows. Vectors have one row and are F32. */
type Shape = readonly [columns: number, rows: number];

/**
 * @param file Name, for messages.
 * @throws {ModelError} Names the first tensor that is missing, surplus, or of the wrong shape.
 */
export function checkTensors(
  config: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo>,
  file: string,
): void {
  const model = modelShapes(config);
  const layer = layerShapes(config);
  // Surplus first: where q, k and v are fused, the fused tensor is what the user should hear of.
  for (const name of tensors.keys()) {
    const [, index, part] = name.match(/^blk\.(0|[1-9]\d{0,9})\.(.+)$/) ?? [];
    const isKnown = index === undefined || part === undefined
      ? model.has(name)
      : Number(index) < config.layers && layer.has(part);
    if (!isKnown) {
      throw new ModelError(
        name,
        `Cannot use ${file}: ${name} is no part of a ${config.architecture} model ` +
          `with ${config.layers} layers (biases and fused projections are not supported)`,
      );
    }
  }
  for (const [name, shape] of model) {
    if (tensors.has(name) || !OPTIONAL.has(name)) checkTensor(file, name, shape, tensors);
  }
  for (let index = 0; index < config.layers; index++) {
    for (const [part, shape] of layer) {
      checkTensor(file, `blk.${index}.${part}`, shape, tensors);
    }
  }
}

/** The output matrix may be the embedding's; the factors of RoPE frequencies are Llama 3's. */
const OPTIONAL: ReadonlySet<string> = new Set(["output.weight", "rope_freqs.weight"]);

function modelShapes(config: ModelConfig): ReadonlyMap<string, Shape> {
  return new Map<string, Shape>([
    ["token_embd.weight", [config.hiddenSize, config.vocabularySize]],
    ["output_norm.weight", [config.hiddenSize, 1]],
    ["output.weight", [config.hiddenSize, config.vocabularySize]],
    ["rope_freqs.weight", [config.rope.dimensions / 2, 1]],
  ]);
}

function layerShapes(config: ModelConfig): ReadonlyMap<string, Shape> {
  const { hiddenSize, feedForwardSize } = config;
  const queries = config.heads * config.headSize;
  const keys = config.kvHeads * config.headSize;
  return new Map<string, Shape>([
    ["attn_norm.weight", [hiddenSize, 1]],
    ["attn_q.weight", [hiddenSize, queries]],
    ["attn_k.weight", [hiddenSize, keys]],
    ["attn_v.weight", [hiddenSize, keys]],
    ["attn_output.weight", [queries, hiddenSize]],
    ["ffn_norm.weight", [hiddenSize, 1]],
    ["ffn_gate.weight", [hiddenSize, feedForwardSize]],
    ["ffn_up.weight", [hiddenSize, feedForwardSize]],
    ["ffn_down.weight", [feedForwardSize, hiddenSize]],
  ]);
}

function checkTensor(
  file: string,
  name: string,
  [columns, rows]: Shape,
  tensors: ReadonlyMap<string, TensorInfo>,
): void {
  const fail = (problem: string) => new ModelError(name, `Cannot use ${file}: ${name} ${problem}`);
  const tensor = tensors.get(name);
  if (tensor === undefined) throw fail("is missing");
  if (tensor.columns !== columns || tensor.rows !== rows) {
    const found = `[${tensor.columns}, ${tensor.rows}]`;
    throw fail(`must have shape [${columns}, ${rows}], current shape is ${found}`);
  }
  if (rows === 1 && tensor.type !== "F32") {
    throw fail(`must have type F32 as a vector, current type is ${tensor.type}`);
  }
}
