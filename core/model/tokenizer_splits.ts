/**
 * How each kind of byte-level vocabulary cuts a text into words before merging. The expressions are
 * those by which the models were trained, as llama.cpp lists them for `tokenizer.ggml.pre`.
 */
import type { Json } from "./tokenizer_spec.ts";

const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";

/** The family of Llama 3 and Qwen 2, which differ in how many digits make a word. */
function llama3(digits: string): string {
  return "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])" +
    `|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*` +
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
}

export interface SplitKind {
  /** Applied one after the other, each to the pieces that the last one left. */
  readonly expressions: readonly string[];
  /** Whether a word that is a token stays whole, whatever the merges say. */
  readonly ignoreMerges?: true;
  /** Whether a text starts with BOS where the metadata does not say. */
  readonly addBos?: true;
}

const SMOLLM: SplitKind = { expressions: ["\\p{N}", GPT2] };
const LLAMA3: SplitKind = {
  expressions: [llama3("\\p{N}{1,3}")],
  ignoreMerges: true,
  addBos: true,
};

/** By the value of `tokenizer.ggml.pre`. */
export const SPLIT_KINDS: Readonly<Record<string, SplitKind>> = {
  "default": {
    expressions: ["[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"],
  },
  "gpt-2": { expressions: [GPT2] },
  "smollm": SMOLLM,
  "starcoder": SMOLLM,
  "refact": SMOLLM,
  "command-r": SMOLLM,
  "llama-bpe": LLAMA3,
  "llama3": LLAMA3,
  "llama-v3": LLAMA3,
  "qwen2": { expressions: [llama3("\\p{N}")] },
};

/** The pre-tokenizer of a `tokenizer.json` that splits so and then maps bytes to characters. */
export function splitAndMapBytes(kind: SplitKind): Json {
  const splits = kind.expressions.map((expression) => ({
    type: "Split",
    pattern: { Regex: expression },
    behavior: "Isolated",
    invert: false,
  }));
  const bytes = {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: false,
    use_regex: false,
  };
  return { type: "Sequence", pretokenizers: [...splits, bytes] };
}

/** Expressions, one of which is enough for a text to be cut; also as `tokenizer.json` files have it. */
const CUTTING: ReadonlySet<string> = new Set(
  [GPT2, llama3("\\p{N}{1,3}"), llama3("\\p{N}")].flatMap((expression) => [
    expression,
    expression.replace(/^\(\?:[^)]*\)/, "(?i:'s|'t|'re|'ve|'m|'ll|'d)"),
  ]),
);

/**
 * Whether a pre-tokenizer of a `tokenizer.json` splits wherever a long text may be cut, and does
 * nothing at the beginning of a text that would then happen at each cut.
 */
export function isCutAtWords(preTokenizer: Json): boolean {
  const parts = steps(preTokenizer);
  const splits = parts.some(({ type, use_regex, pattern, behavior, invert }) =>
    type === "ByteLevel"
      ? use_regex !== false
      : type === "Split" && behavior === "Isolated" && invert !== true &&
        CUTTING.has(String(pattern && Object(pattern)["Regex"]))
  );
  return splits &&
    parts.every(({ type, add_prefix_space }) =>
      ["ByteLevel", "Split", "Digits"].includes(String(type)) && add_prefix_space !== true
    );
}

/** The pre-tokenizers that a `Sequence` consists of. */
function steps(preTokenizer: Json): Record<string, Json>[] {
  if (typeof preTokenizer !== "object" || preTokenizer === null) return [];
  const step = preTokenizer as Record<string, Json>;
  const inner = step["pretokenizers"];
  return Array.isArray(inner) ? inner.flatMap(steps) : [step];
}
