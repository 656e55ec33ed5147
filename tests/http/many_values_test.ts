/** A body that is within its limit may hold a million values: it is refused in one pass, and typed. */
import { assertEquals } from "@std/assert";
import type { EncodeOptions } from "../../core/model/tokenizer.ts";
import { entropic } from "../../core/server/app.ts";
import { ByteTokenizer } from "../support/byte_tokenizer.ts";
import { fakeModel } from "../support/fake_engine.ts";
import { CHAT, COMPLETIONS, expectError, MESSAGES, post } from "./requests.ts";

const many = (json: string, count: number) => `[${Array(count).fill(json).join(",")}]`;
const manyKeys = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, 1])));

/** Each overflowed the stack of a validator that gathers an issue for every value. */
const CASES: readonly [path: string, field: string, json: string, param: string][] = [
  [CHAT, "messages", many("{}", 300_000), "messages"],
  [CHAT, "messages", many("0", 300_000), "messages"],
  [CHAT, "messages", `[{"role":"user","content":${many("0", 300_000)}}]`, "messages[0].content"],
  [COMPLETIONS, "prompt", many("-1", 300_000), "prompt"],
  [COMPLETIONS, "prompt", many('""', 300_000), "prompt"],
  [COMPLETIONS, "prompt", many("[-1]", 300_000), "prompt"],
  [COMPLETIONS, "stop", many('""', 300_000), "stop"],
  [COMPLETIONS, "stop_token_ids", many("-1", 300_000), "stop_token_ids"],
  [COMPLETIONS, "logit_bias", manyKeys(200_000), "logit_bias.x0"],
  ["/tokenize", "messages", many("{}", 300_000), "messages"],
  ["/detokenize", "tokens", many("-1", 300_000), "tokens[0]"],
];

Deno.test("hundreds of thousands of bad values are a typed 400, and the next request succeeds", async (t) => {
  for (const [path, field, json, param] of CASES) {
    await t.step(`${path} ${field} ${json.slice(0, 30)}`, async () => {
      const app = entropic(fakeModel());
      const base = path === CHAT ? { messages: MESSAGES } : {};
      const text = JSON.stringify({ ...base, [field]: "@" }).replace('"@"', json);
      const response = await post(app, path, text);
      await expectError(app, response, { status: 400, says: [param] });
    });
  }
});

/** A fake model, and how many texts its tokenizer has encoded. */
function countingModel() {
  const model = fakeModel();
  const tokenizer = new CountingTokenizer();
  return { model: { ...model, tokenizer }, tokenizer };
}

class CountingTokenizer extends ByteTokenizer {
  encoded = 0;

  override encode(text: string, options?: EncodeOptions): Uint32Array {
    this.encoded++;
    return super.encode(text, options);
  }
}

Deno.test("prompts are counted before any of them is encoded", async () => {
  const { model, tokenizer } = countingModel();
  const app = entropic(model);
  const response = await post(app, COMPLETIONS, { prompt: Array(1000).fill("a") });
  assertEquals(tokenizer.encoded, 0);
  await expectError(app, response, { status: 400, says: ["1000 prompts", "16 choices"] });
});

Deno.test("a text that cannot fit the context is refused before it is encoded", async () => {
  const text = "a".repeat(1_000_000);
  const messages = [{ role: "user", content: text }];
  const cases = [[CHAT, { messages }], [COMPLETIONS, { prompt: text }], ["/tokenize", {
    content: text,
  }]] as const;
  for (const [path, body] of cases) {
    const { model, tokenizer } = countingModel();
    const app = entropic(model);
    const response = await post(app, path, body);
    assertEquals(tokenizer.encoded, 0, path);
    const code = "context_length_exceeded";
    await expectError(app, response, { status: 400, code, says: ["at least 8333", "512 tokens"] });
  }
});
