/**
 * A tiny Llama-shaped model, made from a seed: real structure, random weights, a byte-level BPE
 * vocabulary with control tokens and a chat template. Most tests need no more than this.
 *
 * `deno run -A tests/support/tiny_model.ts FILE [TYPE]` writes it to a file.
 */
import { TENSOR_TYPES, type TensorType } from "../../core/model/tensors.ts";
import { type EncodedValue, gguf, type GgufTensorSpec, writeGguf } from "./gguf_writer.ts";
import { quantise } from "./quantise.ts";
import { normals, randomNumbers } from "./random.ts";
import { CONTROL_TOKENS, tinyVocabulary } from "./tiny_vocabulary.ts";

export interface TinyModelOptions {
  /** Type of all matrices; vectors are F32. */
  readonly type?: TensorType;
  /** Of some matrices in all layers, by name: `attn_v`. */
  readonly types?: Readonly<Record<string, TensorType>>;
  readonly seed?: number;
  readonly layers?: number;
  readonly hiddenSize?: number;
  readonly feedForwardSize?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly headSize?: number;
  readonly contextLength?: number;
  /** Whether there is a separate output matrix. */
  readonly untied?: boolean;
  /** Content of `rope_freqs.weight`, which is left out otherwise. */
  readonly ropeFactors?: readonly number[];
  /** Pairs that are added to the metadata, or replace those of the same key. */
  readonly metadata?: readonly (readonly [key: string, value: EncodedValue])[];
}

/** ChatML, as SmolLM2's own template writes it. */
export const TINY_CHAT_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + " +
  "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

type Shape = Required<Omit<TinyModelOptions, "ropeFactors" | "metadata">>;

/**
 * The bytes of a model file. Sizes default to the smallest that the tensor type allows: types with
 * blocks of 256 elements need rows of 256, the others have rows of 64.
 */
export function tinyModel(options: TinyModelOptions = {}): Uint8Array<ArrayBuffer> {
  return writeGguf(tinyModelSpec(options));
}

/** What `tinyModel` writes, for tests that spoil it first. */
export function tinyModelSpec(options: TinyModelOptions = {}) {
  const type = options.type ?? "F32";
  const heads = options.heads ?? 4;
  const width = TENSOR_TYPES[type].blockSize === 256 ? 256 : 64;
  const hiddenSize = options.hiddenSize ?? width;
  const shape: Shape = {
    type,
    types: {},
    seed: 1,
    layers: 2,
    hiddenSize,
    feedForwardSize: 2 * width,
    heads,
    kvHeads: 2,
    headSize: hiddenSize / heads,
    contextLength: 256,
    untied: false,
    ...options,
  };
  const vocabulary = tinyVocabulary();
  return {
    metadata: [
      ...new Map([...metadataPairs(shape, vocabulary), ...options.metadata ?? []]),
    ],
    tensors: tensorSpecs(shape, vocabulary.tokens.length, options.ropeFactors),
  };
}

function metadataPairs(
  shape: Shape,
  { tokens, merges }: ReturnType<typeof tinyVocabulary>,
): [key: string, value: EncodedValue][] {
  const types = tokens.map((_, id) => id < CONTROL_TOKENS.length ? 3 : 1);
  return [
    ["general.architecture", gguf.text("llama")],
    ["general.name", gguf.text(`Tiny ${shape.type}`)],
    ["llama.block_count", gguf.uint32(shape.layers)],
    ["llama.context_length", gguf.uint32(shape.contextLength)],
    ["llama.embedding_length", gguf.uint32(shape.hiddenSize)],
    ["llama.feed_forward_length", gguf.uint32(shape.feedForwardSize)],
    ["llama.attention.head_count", gguf.uint32(shape.heads)],
    ["llama.attention.head_count_kv", gguf.uint32(shape.kvHeads)],
    ["llama.attention.key_length", gguf.uint32(shape.headSize)],
    ["llama.attention.value_length", gguf.uint32(shape.headSize)],
    ["llama.attention.layer_norm_rms_epsilon", gguf.float32(1e-5)],
    ["llama.rope.freq_base", gguf.float32(10000)],
    ["llama.rope.dimension_count", gguf.uint32(shape.headSize)],
    ["llama.vocab_size", gguf.uint32(tokens.length)],
    ["tokenizer.ggml.model", gguf.text("gpt2")],
    ["tokenizer.ggml.pre", gguf.text("smollm")],
    ["tokenizer.ggml.tokens", gguf.strings(tokens)],
    ["tokenizer.ggml.token_type", gguf.int32s(types)],
    ["tokenizer.ggml.merges", gguf.strings(merges)],
    ["tokenizer.ggml.bos_token_id", gguf.uint32(1)],
    ["tokenizer.ggml.eos_token_id", gguf.uint32(2)],
    ["tokenizer.ggml.unknown_token_id", gguf.uint32(0)],
    ["tokenizer.ggml.padding_token_id", gguf.uint32(2)],
    ["tokenizer.ggml.add_bos_token", gguf.bool(false)],
    ["tokenizer.ggml.add_space_prefix", gguf.bool(false)],
    ["tokenizer.chat_template", gguf.text(TINY_CHAT_TEMPLATE)],
  ];
}

function tensorSpecs(
  shape: Shape,
  vocabularySize: number,
  ropeFactors: readonly number[] | undefined,
): GgufTensorSpec[] {
  const { hiddenSize, feedForwardSize, headSize } = shape;
  const queries = shape.heads * headSize;
  const keys = shape.kvHeads * headSize;
  const random = randomNumbers(shape.seed);
  const vector = (name: string, values: Float32Array): GgufTensorSpec => ({
    name,
    dimensions: [values.length],
    type: TENSOR_TYPES.F32.id,
    data: quantise("F32", values),
  });
  // Around 1, and not all alike, so that a kernel that forgets the norm's weights is seen.
  const norm = (name: string) =>
    vector(name, normals(hiddenSize, 0.1, random).map((value) => 1 + value));
  const matrix = (name: string, columns: number, rows: number, gain = 1): GgufTensorSpec => {
    const type = shape.types[name.split(".").at(-2) ?? ""] ?? shape.type;
    return {
      name,
      dimensions: [columns, rows],
      type: TENSOR_TYPES[type].id,
      data: quantise(type, normals(columns * rows, gain / Math.sqrt(columns), random)),
    };
  };
  const layer = (prefix: string): GgufTensorSpec[] => [
    norm(`${prefix}.attn_norm.weight`),
    matrix(`${prefix}.attn_q.weight`, hiddenSize, queries),
    matrix(`${prefix}.attn_k.weight`, hiddenSize, keys),
    matrix(`${prefix}.attn_v.weight`, hiddenSize, keys),
    matrix(`${prefix}.attn_output.weight`, queries, hiddenSize),
    norm(`${prefix}.ffn_norm.weight`),
    matrix(`${prefix}.ffn_gate.weight`, hiddenSize, feedForwardSize),
    matrix(`${prefix}.ffn_up.weight`, hiddenSize, feedForwardSize),
    matrix(`${prefix}.ffn_down.weight`, feedForwardSize, hiddenSize),
  ];
  // The gain gives logits a deviation of some 2.5: neither flat nor certain.
  return [
    matrix("token_embd.weight", hiddenSize, vocabularySize, 2.5),
    ...Array.from({ length: shape.layers }, (_, index) => layer(`blk.${index}`)).flat(),
    norm("output_norm.weight"),
    ...(shape.untied ? [matrix("output.weight", hiddenSize, vocabularySize, 2.5)] : []),
    ...(ropeFactors ? [vector("rope_freqs.weight", Float32Array.from(ropeFactors))] : []),
  ];
}

if (import.meta.main) {
  const { writeFile } = await import("node:fs/promises");
  const { argv } = await import("node:process");
  const [file, type = "F32"] = argv.slice(2);
  if (file === undefined || !(type in TENSOR_TYPES)) {
    throw new Error("Usage: tiny_model.ts FILE [TYPE]");
  }
  await writeFile(file, tinyModel({ type: type as TensorType }));
}
