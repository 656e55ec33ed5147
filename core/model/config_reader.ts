/**
 * Reads the shape of a model from GGUF metadata. Key names and defaults are those of the GGUF
 * specification; where it is silent, of llama.cpp.
 */
import type { ModelConfig, RopeConfig, RopeScaling } from "./config.ts";
import { checkTensors } from "./config_tensors.ts";
import { readEndTokens } from "./end_tokens.ts";
import type { GgufMetadata } from "./gguf/metadata.ts";
import type { TensorInfo } from "./tensors.ts";

/** Values of `general.architecture` that the project runs. */
const ARCHITECTURES = ["llama"] as const;

/** Sizes are kept in 32 bits by the backends. */
const MAX_SIZE = 2 ** 31 - 1;

/**
 * @throws {ModelError} The architecture is another, or a variant of it that computes differently.
 */
export function checkArchitecture(metadata: GgufMetadata): ModelConfig["architecture"] {
  const key = "general.architecture";
  const name = metadata.string(key);
  const architecture = ARCHITECTURES.find((known) => known === name);
  if (architecture === undefined) {
    const supported = ARCHITECTURES.join(", ");
    throw metadata.error(key, `is ${JSON.stringify(name)}, supported: ${supported}`);
  }
  const experts = `${architecture}.expert_count`;
  if (metadata.uint(experts, 0) > 0) {
    throw metadata.error(experts, "must be 0: mixtures of experts are not supported");
  }
  return architecture;
}

/**
 * The configuration of a model, after checking that `tensors` are the ones that it needs.
 *
 * @throws {ModelError} A key is missing or out of range, or a tensor is missing, surplus or of the
 * wrong shape.
 */
export function readModelConfig(
  metadata: GgufMetadata,
  tensors: ReadonlyMap<string, TensorInfo>,
): ModelConfig {
  const architecture = checkArchitecture(metadata);
  const key = (name: string) => `${architecture}.${name}`;
  const hiddenSize = size(metadata, key("embedding_length"));
  const contextLength = size(metadata, key("context_length"));
  const heads = readHeads(metadata, key, hiddenSize);
  const tokens = metadata.strings("tokenizer.ggml.tokens", undefined);
  const config: ModelConfig = {
    architecture,
    name: metadata.string("general.name", metadata.file.replace(/^.*\/|\.gguf$/g, "")),
    layers: size(metadata, key("block_count")),
    hiddenSize,
    feedForwardSize: size(metadata, key("feed_forward_length")),
    ...heads,
    vocabularySize: tokens?.length ?? tensors.get("token_embd.weight")?.rows ?? 0,
    contextLength,
    rmsEpsilon: positive(metadata, key("attention.layer_norm_rms_epsilon")),
    rope: readRope(metadata, key, heads.headSize, contextLength),
    tiedOutput: !tensors.has("output.weight"),
    endTokens: readEndTokens(metadata),
  };
  checkTensors(config, tensors, metadata.file);
  return config;
}

function readHeads(
  metadata: GgufMetadata,
  key: (name: string) => string,
  hiddenSize: number,
): Pick<ModelConfig, "heads" | "kvHeads" | "headSize"> {
  const heads = size(metadata, key("attention.head_count"));
  const kvHeads = size(metadata, key("attention.head_count_kv"), heads);
  if (heads % kvHeads !== 0) {
    throw metadata.error(
      key("attention.head_count_kv"),
      `must divide the head count ${heads}, current value is ${kvHeads}`,
    );
  }
  const share = hiddenSize / heads;
  if (!metadata.has(key("attention.key_length")) && !Number.isInteger(share)) {
    throw metadata.error(
      key("attention.head_count"),
      `must divide the embedding length ${hiddenSize}, current value is ${heads}`,
    );
  }
  const headSize = size(metadata, key("attention.key_length"), share);
  const valueLength = size(metadata, key("attention.value_length"), headSize);
  if (valueLength !== headSize) {
    throw metadata.error(
      key("attention.value_length"),
      `must equal the key length ${headSize}, current value is ${valueLength}`,
    );
  }
  return { heads, kvHeads, headSize };
}

function readRope(
  metadata: GgufMetadata,
  key: (name: string) => string,
  headSize: number,
  contextLength: number,
): RopeConfig {
  const dimensions = size(metadata, key("rope.dimension_count"), headSize);
  if (dimensions % 2 !== 0 || dimensions > headSize) {
    throw metadata.error(
      key("rope.dimension_count"),
      `must be even and at most the head size ${headSize}, current value is ${dimensions}`,
    );
  }
  const base = positive(metadata, key("rope.freq_base"), 10000);
  if (base <= 1) {
    throw metadata.error(key("rope.freq_base"), `must be above 1, current value is ${base}`);
  }
  return { base, dimensions, scaling: readScaling(metadata, key, contextLength) };
}

function readScaling(
  metadata: GgufMetadata,
  key: (name: string) => string,
  contextLength: number,
): RopeScaling {
  const factor = readScalingFactor(metadata, key);
  const type = metadata.string(key("rope.scaling.type"), "linear");
  switch (type) {
    case "none":
      return { type };
    case "linear":
      return factor === 1 ? { type: "none" } : { type, factor };
    case "yarn": {
      const scaling = (name: string) => key(`rope.scaling.${name}`);
      return {
        type,
        factor,
        originalContext: size(metadata, scaling("original_context_length"), contextLength),
        attentionFactor: positive(
          metadata,
          scaling("yarn_attn_factor"),
          positive(metadata, scaling("attn_factor"), 1),
        ),
        betaFast: positive(metadata, scaling("yarn_beta_fast"), 32),
        betaSlow: positive(metadata, scaling("yarn_beta_slow"), 1),
      };
    }
    default:
      throw metadata.error(
        key("rope.scaling.type"),
        `is ${JSON.stringify(type)}, supported: none, linear, yarn`,
      );
  }
}

/** 0 means that there is none; `rope.scale_linear` is the name that early files used. */
function readScalingFactor(metadata: GgufMetadata, key: (name: string) => string): number {
  for (const name of [key("rope.scaling.factor"), key("rope.scale_linear")]) {
    const factor = metadata.float(name, 0);
    if (factor !== 0) return positive(metadata, name);
  }
  return 1;
}

/** An integer from 1 to 2^31 - 1. */
function size(metadata: GgufMetadata, key: string, fallback?: number): number {
  const value = fallback === undefined ? metadata.uint(key) : metadata.uint(key, fallback);
  if (value < 1 || value > MAX_SIZE) {
    throw metadata.error(key, `must be from 1 to ${MAX_SIZE}, current value is ${value}`);
  }
  return value;
}

function positive(metadata: GgufMetadata, key: string, fallback?: number): number {
  const value = fallback === undefined ? metadata.float(key) : metadata.float(key, fallback);
  if (!(value > 0)) throw metadata.error(key, `must be above 0, current value is ${value}`);
  return value;
}
