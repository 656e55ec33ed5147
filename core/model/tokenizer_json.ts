/** A Hugging Face `tokenizer.json` to a tokenizer's specification. */
import { ModelError } from "../errors.ts";
import { PackedStrings } from "./packed_strings.ts";
import { isCutAtWords } from "./tokenizer_splits.ts";
import {
  type AddedToken,
  type Json,
  TOKEN_TYPES,
  type TokenizerSpec,
  type TokenModel,
} from "./tokenizer_spec.ts";

type JsonObject = { readonly [key: string]: Json };

/** Most ids that a vocabulary may have; the largest in use have some 260,000. */
const MOST_TOKENS = 1 << 22;

/**
 * Reads tokenizers of the kinds BPE and Unigram.
 *
 * @param text The file's content.
 * @throws {ModelError} It is no JSON, lacks something, or is of another kind.
 */
export function tokenizerFromJson(text: string): TokenizerSpec {
  const file = object(parse(text), "the file");
  const model = object(file["model"], "model");
  const type = model["type"];
  if (type !== "BPE" && type !== "Unigram") {
    throw error("model.type", `must be BPE or Unigram, current value is ${JSON.stringify(type)}`);
  }
  const added = list(file["added_tokens"] ?? [], "added_tokens").map(addedToken);
  const pieces = type === "BPE" ? bpeVocabulary(model) : unigramVocabulary(model);
  const tokens = vocabulary(pieces, added);
  const unknown = unknownToken(model, tokens);
  const byteFallback = model["byte_fallback"] === true;
  return {
    tokens: PackedStrings.from(tokens),
    types: tokenTypes(tokens, added, unknown, byteFallback),
    spelling: mentions([file["pre_tokenizer"], file["decoder"]], "ByteLevel") ? "bytes" : "spaces",
    scores: type === "BPE" ? new Float32Array() : scores(pieces, tokens.length),
    merges: PackedStrings.from(
      type === "BPE" ? list(model["merges"], "model.merges").map(merge) : [],
    ),
    model: type === "BPE"
      ? bpe(model, unknown, byteFallback)
      : { type: "unigram", unknown, byteFallback },
    normalizer: file["normalizer"] ?? null,
    preTokenizer: file["pre_tokenizer"] ?? null,
    cutAtWords: (file["normalizer"] ?? null) === null &&
      isCutAtWords(file["pre_tokenizer"] ?? null),
    added,
    ...aroundText(file["post_processor"] ?? null),
  };
}

interface Piece {
  readonly id: number;
  readonly text: string;
  readonly score: number;
}

function bpeVocabulary(model: JsonObject): Piece[] {
  return Object.entries(object(model["vocab"], "model.vocab"))
    .map(([text, id]) => ({ text, id: tokenId(id, "model.vocab"), score: 0 }));
}

function unigramVocabulary(model: JsonObject): Piece[] {
  return list(model["vocab"], "model.vocab").map((pair, id) => {
    const [text, score] = Array.isArray(pair) ? pair as readonly Json[] : [];
    if (typeof text !== "string" || typeof score !== "number") {
      throw error(`model.vocab[${id}]`, "must be a text and a score");
    }
    return { text, id, score };
  });
}

/** The text of each id; ids that nothing has are empty. */
function vocabulary(pieces: readonly Piece[], added: readonly AddedToken[]): string[] {
  const all = [...pieces, ...added];
  const tokens = new Array<string>(all.reduce((most, { id }) => Math.max(most, id + 1), 0)).fill(
    "",
  );
  for (const { id, text } of all) tokens[id] = text;
  return tokens;
}

function tokenTypes(
  tokens: readonly string[],
  added: readonly AddedToken[],
  unknown: number | null,
  byteFallback: boolean,
): Uint8Array {
  const types = Uint8Array.from(tokens, (text) => {
    if (text === "") return TOKEN_TYPES.unused;
    return byteFallback && /^<0x[0-9A-F]{2}>$/.test(text) ? TOKEN_TYPES.byte : TOKEN_TYPES.normal;
  });
  for (const { id, control } of added) {
    types[id] = control ? TOKEN_TYPES.control : TOKEN_TYPES.userDefined;
  }
  if (unknown !== null) types[unknown] = TOKEN_TYPES.unknown;
  return types;
}

function scores(pieces: readonly Piece[], count: number): Float32Array {
  const scores = new Float32Array(count);
  for (const { id, score } of pieces) scores[id] = score;
  return scores;
}

function bpe(model: JsonObject, unknown: number | null, byteFallback: boolean): TokenModel {
  return {
    type: "bpe",
    ignoreMerges: model["ignore_merges"] === true,
    byteFallback,
    fuseUnknown: model["fuse_unk"] === true,
    unknown,
    continuingPrefix: optionalText(model["continuing_subword_prefix"]),
    wordSuffix: optionalText(model["end_of_word_suffix"]),
  };
}

function unknownToken(model: JsonObject, tokens: readonly string[]): number | null {
  const id = model["unk_id"];
  if (typeof id === "number") return tokenId(id, "model.unk_id", tokens.length);
  const text = optionalText(model["unk_token"]);
  const found = text === null ? -1 : tokens.indexOf(text);
  return found < 0 ? null : found;
}

/** A merge as a text, "left right", or in newer files as a pair. */
function merge(value: Json, index: number): string {
  if (typeof value === "string") return value;
  const [left, right] = Array.isArray(value) ? value as readonly Json[] : [];
  if (typeof left !== "string" || typeof right !== "string" || left.includes(" ")) {
    throw error(`model.merges[${index}]`, "must be two texts, the first without a space");
  }
  return `${left} ${right}`;
}

function addedToken(value: Json, index: number): AddedToken {
  const key = `added_tokens[${index}]`;
  const token = object(value, key);
  if (typeof token["content"] !== "string") throw error(`${key}.content`, "must be a text");
  return {
    id: tokenId(token["id"], `${key}.id`),
    text: token["content"],
    control: token["special"] === true,
    stripLeft: token["lstrip"] === true,
    stripRight: token["rstrip"] === true,
  };
}

/** Which tokens a template such as `<s> $A </s>` puts around a text. */
function aroundText(processor: Json): { before: number[]; after: number[] } {
  const around = { before: [] as number[], after: [] as number[] };
  const template = findObject(processor, "TemplateProcessing");
  if (template === undefined) return around;
  const special = object(template["special_tokens"], "post_processor.special_tokens");
  let side: "before" | "after" = "before";
  for (const item of list(template["single"], "post_processor.single")) {
    const token = object(item, "post_processor.single")["SpecialToken"];
    if (token === undefined) {
      side = "after";
      continue;
    }
    const name = String(object(token, "post_processor.single")["id"]);
    const ids = object(special[name], `post_processor.special_tokens.${name}`)["ids"];
    const key = `post_processor.special_tokens.${name}.ids`;
    around[side].push(...list(ids, key).map((id) => tokenId(id, key)));
  }
  return around;
}

/** The first object of a type in a value, at any depth. */
function findObject(value: Json | undefined, type: string): JsonObject | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!Array.isArray(value) && (value as JsonObject)["type"] === type) return value as JsonObject;
  for (const part of Object.values(value)) {
    const found = findObject(part, type);
    if (found !== undefined) return found;
  }
  return undefined;
}

const mentions = (values: readonly (Json | undefined)[], type: string): boolean =>
  values.some((value) => findObject(value, type) !== undefined);

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ModelError("tokenizer.json", `Cannot read tokenizer.json: ${cause}`, { cause });
  }
}

function object(value: Json | undefined, key: string): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw error(key, "must be an object");
}

function list(value: Json | undefined, key: string): readonly Json[] {
  if (Array.isArray(value)) return value;
  throw error(key, "must be an array");
}

function tokenId(value: Json | undefined, key: string, count = MOST_TOKENS): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value < count) {
    return value;
  }
  throw error(key, `must be an id from 0 to ${count - 1}, current value is ${String(value)}`);
}

const optionalText = (value: Json | undefined): string | null =>
  typeof value === "string" && value !== "" ? value : null;

function error(key: string, problem: string): ModelError {
  return new ModelError(key, `Cannot use tokenizer.json: ${key} ${problem}`);
}
