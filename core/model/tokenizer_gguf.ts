/** GGUF metadata (`tokenizer.ggml.*`) to a tokenizer's specification. */
import type { GgufMetadata } from "./gguf/metadata.ts";
import { PackedStrings } from "./packed_strings.ts";
import { SPLIT_KINDS, splitAndMapBytes } from "./tokenizer_splits.ts";
import { type AddedToken, TOKEN_TYPES, type TokenizerSpec } from "./tokenizer_spec.ts";

const PREFIX = "tokenizer.ggml.";

/** Keys of tokens that are control tokens whatever their type says. */
const CONTROL_KEYS = ["bos", "eos", "eot", "eom", "padding", "mask", "seperator", "cls"];

/** Texts of tokens that are control tokens whatever their type says: so llama.cpp decides, too. */
const CONTROL_TEXTS = [
  "</s>",
  "<|endoftext|>",
  "<|end_of_text|>",
  "<|im_start|>",
  "<|im_end|>",
  "<|end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<start_of_turn>",
  "<end_of_turn>",
  "<end_of_utterance>",
  "<EOT>",
  "_<EOT>",
  "[EOT]",
];

/**
 * Reads byte-level BPE (`gpt2`) and SentencePiece vocabularies with scores (`llama`).
 *
 * @throws {ModelError} A key is missing, of the wrong type, or outside what this project supports.
 */
export function tokenizerFromGguf(metadata: GgufMetadata): TokenizerSpec {
  const model = metadata.string(`${PREFIX}model`);
  if (model === "gpt2") return byteLevel(metadata);
  if (model === "llama") return sentencePiece(metadata);
  throw metadata.error(
    `${PREFIX}model`,
    `must be gpt2 or llama, current value is ${JSON.stringify(model)}`,
  );
}

function byteLevel(metadata: GgufMetadata): TokenizerSpec {
  const pre = metadata.string(`${PREFIX}pre`, "default");
  const kind = Object.hasOwn(SPLIT_KINDS, pre) ? SPLIT_KINDS[pre] : undefined;
  if (kind === undefined) {
    throw metadata.error(
      `${PREFIX}pre`,
      `must be one of ${Object.keys(SPLIT_KINDS).join(", ")}, ` +
        `current value is ${JSON.stringify(pre)}`,
    );
  }
  return {
    ...vocabulary(metadata, { bos: kind.addBos ?? false, eos: false }),
    spelling: "bytes",
    scores: new Float32Array(),
    merges: metadata.strings(`${PREFIX}merges`),
    model: {
      type: "bpe",
      ignoreMerges: kind.ignoreMerges ?? false,
      byteFallback: false,
      fuseUnknown: false,
      unknown: null,
      continuingPrefix: null,
      wordSuffix: null,
    },
    normalizer: null,
    preTokenizer: splitAndMapBytes(kind),
    cutAtWords: true,
  };
}

function sentencePiece(metadata: GgufMetadata): TokenizerSpec {
  const common = vocabulary(metadata, { bos: true, eos: false });
  const scores = Float32Array.from(metadata.floats(`${PREFIX}scores`));
  checkLength(metadata, "scores", scores.length, common.tokens.length);
  return {
    ...common,
    spelling: "spaces",
    scores,
    merges: PackedStrings.from([]),
    model: {
      type: "sentencePiece",
      spacePrefix: metadata.bool(`${PREFIX}add_space_prefix`, true),
      unknown: tokenId(metadata, "unknown", common.tokens.length) ?? null,
      bytes: byteTokens(common.tokens, common.types),
    },
    normalizer: null,
    preTokenizer: null,
    cutAtWords: false,
  };
}

type Vocabulary = Pick<TokenizerSpec, "tokens" | "types" | "added" | "before" | "after">;

function vocabulary(
  metadata: GgufMetadata,
  fallback: { readonly bos: boolean; readonly eos: boolean },
): Vocabulary {
  const tokens = metadata.strings(`${PREFIX}tokens`);
  const types = tokenTypes(metadata, tokens);
  return {
    tokens,
    types,
    added: addedTokens(tokens, types),
    before: around(metadata, "bos", fallback.bos),
    after: around(metadata, "eos", fallback.eos),
  };
}

function tokenTypes(metadata: GgufMetadata, tokens: PackedStrings): Uint8Array {
  const count = tokens.length;
  const given = metadata.ints(`${PREFIX}token_type`, undefined);
  if (given !== undefined) checkLength(metadata, "token_type", given.length, count);
  const types = given === undefined
    ? new Uint8Array(count).fill(TOKEN_TYPES.normal)
    : Uint8Array.from(given);
  for (const text of CONTROL_TEXTS) {
    const id = tokens.indexOf(text);
    if (id >= 0) types[id] = TOKEN_TYPES.control;
  }
  for (const key of CONTROL_KEYS) {
    const id = tokenId(metadata, key, count);
    if (id !== undefined) types[id] = TOKEN_TYPES.control;
  }
  return types;
}

/** The id that `tokenizer.ggml.<name>_token_id` holds. */
function tokenId(metadata: GgufMetadata, name: string, count: number): number | undefined {
  const key = `${PREFIX}${name}_token_id`;
  const id = metadata.uint(key, undefined);
  if (id !== undefined && id >= count) {
    throw metadata.error(key, `must be below the vocabulary size ${count}, current value is ${id}`);
  }
  return id;
}

function addedTokens(tokens: PackedStrings, types: Uint8Array): AddedToken[] {
  const added: AddedToken[] = [];
  types.forEach((type, id) => {
    const control = type === TOKEN_TYPES.control || type === TOKEN_TYPES.unknown;
    if (control || type === TOKEN_TYPES.userDefined) {
      const text = tokens.at(id) ?? "";
      added.push({ id, text, control, stripLeft: false, stripRight: false });
    }
  });
  return added;
}

/** The token that `add_<name>_token` puts around a text, if it does. */
function around(metadata: GgufMetadata, name: "bos" | "eos", fallback: boolean): number[] {
  if (!metadata.bool(`${PREFIX}add_${name}_token`, fallback)) return [];
  const id = metadata.uint(`${PREFIX}${name}_token_id`, undefined);
  return id === undefined ? [] : [id];
}

/** Ids of the tokens `<0x00>` to `<0xFF>`, or none where one is missing. */
function byteTokens(tokens: PackedStrings, types: Uint8Array): number[] {
  const ids = new Array<number>(256).fill(-1);
  types.forEach((type, id) => {
    if (type !== TOKEN_TYPES.byte) return;
    const value = /^<0x([0-9A-F]{2})>$/.exec(tokens.at(id) ?? "")?.[1];
    if (value !== undefined) ids[parseInt(value, 16)] = id;
  });
  return ids.includes(-1) ? [] : ids;
}

function checkLength(metadata: GgufMetadata, name: string, length: number, count: number): void {
  if (length !== count) {
    throw metadata.error(
      PREFIX + name,
      `must have an entry for each of the ${count} tokens, it has ${length}`,
    );
  }
}
