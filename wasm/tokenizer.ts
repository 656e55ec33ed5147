/** The Tokenizer over the Rust crate `tokenizers`: Rust encodes, `TokenTable` decodes. */
import { TokenTable } from "../core/model/tokenizer_table.ts";
import type { EncodeOptions, Tokenizer } from "../core/model/tokenizer.ts";
import { longestToken } from "../core/model/tokenizer_longest.ts";
import { TOKEN_TYPES, type TokenizerSpec } from "../core/model/tokenizer_spec.ts";
import { ModelError } from "../core/errors.ts";
import { readAsset } from "./asset.ts";
import { Encoder, initSync } from "./lib/tokenizers.js";

let loading: Promise<void> | undefined;

/** Compiles the WASM module once, however many tokenizers there are. */
function loadModule(): Promise<void> {
  loading ??= readAsset(new URL("./lib/tokenizers_bg.wasm", import.meta.url))
    .then((bytes) => WebAssembly.compile(bytes))
    .then((module) => void initSync({ module }))
    .catch((error) => {
      loading = undefined; // A later call may find the file again.
      throw error;
    });
  return loading;
}

/** @throws {ModelError} The specification is no working tokenizer. */
export async function createTokenizer(spec: TokenizerSpec): Promise<Tokenizer> {
  await loadModule();
  return new WasmTokenizer(spec, createEncoder(spec));
}

class WasmTokenizer implements Tokenizer {
  readonly #encoder: Encoder;
  readonly #table: TokenTable;
  readonly #before: readonly number[];
  readonly #after: readonly number[];
  readonly longestToken: number;

  constructor(spec: TokenizerSpec, encoder: Encoder) {
    this.#encoder = encoder;
    this.#table = new TokenTable(spec);
    this.#before = spec.before;
    this.#after = spec.after;
    this.longestToken = longestToken(spec);
  }

  get vocabularySize(): number {
    return this.#table.size;
  }

  encode(text: string, options: EncodeOptions = {}): Uint32Array {
    const ids = this.#encoder.encode(text, options.parseSpecial ?? false);
    if (!options.addSpecial) return ids;
    const [before, after] = [this.#before, this.#after];
    const all = new Uint32Array(before.length + ids.length + after.length);
    all.set(before);
    all.set(ids, before.length);
    all.set(after, before.length + ids.length);
    return all;
  }

  decode(tokens: ArrayLike<number>, options: { readonly special?: boolean } = {}): string {
    return this.#table.decode(tokens, options.special ?? false);
  }

  tokenBytes(token: number): Uint8Array {
    return this.#table.bytes(token);
  }

  tokenText(token: number): string {
    return this.#table.text(token);
  }

  isControl(token: number): boolean {
    return this.#table.isControl(token);
  }
}

function createEncoder(spec: TokenizerSpec): Encoder {
  const { merges, model, normalizer, preTokenizer, cutAtWords, added } = spec;
  const tokens = spec.tokens.keepIf((id) => isReachable(spec, id));
  const definition = JSON.stringify({ model, normalizer, preTokenizer, cutAtWords, added });
  try {
    return new Encoder(
      definition,
      tokens.bytes,
      tokens.ends,
      spec.scores,
      merges.bytes,
      merges.ends,
    );
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ModelError("tokenizer", `Cannot build the tokenizer: ${reason}`, { cause });
  }
}

/** Whether merging plain text may give a token: never a control token, whatever the text. */
function isReachable({ model, types }: TokenizerSpec, id: number): boolean {
  switch (types[id]) {
    case TOKEN_TYPES.normal:
    case TOKEN_TYPES.userDefined:
      return true;
    // SentencePiece's own encoder gets them apart from the vocabulary.
    case TOKEN_TYPES.byte:
    case TOKEN_TYPES.unknown:
      return model.type !== "sentencePiece";
    default:
      return false;
  }
}
