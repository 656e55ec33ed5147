/** A body that is within its limit may hold a million values: it is refused in one pass, and typed. */
import { assert } from "@std/assert";
import { entropic } from "../../core/server/app.ts";
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

Deno.test("prompts are counted before any of them is encoded", async () => {
  const model = fakeModel();
  let encoded = 0;
  const { tokenizer } = model;
  const encode = tokenizer.encode.bind(tokenizer);
  const counting = Object.assign(Object.create(tokenizer), {
    encode(...args: Parameters<typeof encode>) {
      encoded++;
      return encode(...args);
    },
  });
  const app = entropic({ ...model, tokenizer: counting });
  const response = await post(app, COMPLETIONS, { prompt: Array(1000).fill("a") });
  const atRefusal = encoded;
  await expectError(app, response, { status: 400, says: ["1000 prompts", "16 choices"] });
  assert(atRefusal === 0, `encoded ${atRefusal} prompts`);
});
