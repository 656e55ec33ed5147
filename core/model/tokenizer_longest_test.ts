import { assertEquals } from "@std/assert";
import { PackedStrings } from "./packed_strings.ts";
import { longestToken } from "./tokenizer_longest.ts";
import { TOKEN_TYPES, type TokenizerSpec } from "./tokenizer_spec.ts";

const { normal, control, unused } = TOKEN_TYPES;

const SPEC: TokenizerSpec = {
  tokens: PackedStrings.from(["a", "\u0120abc", "<|end|>", "never reached"]),
  types: Uint8Array.of(normal, normal, control, unused),
  spelling: "bytes",
  scores: new Float32Array(),
  merges: PackedStrings.from([]),
  model: {
    type: "bpe",
    ignoreMerges: false,
    byteFallback: false,
    fuseUnknown: false,
    unknown: null,
    continuingPrefix: null,
    wordSuffix: null,
  },
  normalizer: null,
  preTokenizer: null,
  cutAtWords: true,
  added: [],
  before: [],
  after: [],
};

Deno.test("longestToken is the length of the longest token in use", () => {
  assertEquals(longestToken(SPEC), "<|end|>".length);
});

Deno.test("longestToken knows no bound where text may vanish", () => {
  const strips = { id: 2, text: "<|end|>", control: true, stripLeft: true, stripRight: false };
  const changes: Partial<TokenizerSpec>[] = [
    { cutAtWords: false },
    { spelling: "spaces" },
    { added: [strips] },
  ];
  for (const change of changes) assertEquals(longestToken({ ...SPEC, ...change }), Infinity);
});
