/**
 * Records generations of the real model for `simulate.ts`:
 * `deno run -A tests/eval/scheduling/record.ts [--count N] > tests/data/generations.json`
 */
import { type Command, runCommand } from "../../../core/host/cli/options.ts";
import type { LanguageModel } from "../../../core/language_model.ts";
import { encodePrompt } from "../../../core/model/chat_template.ts";
import { loadModel } from "../../../mod.ts";
import { REAL_MODEL } from "../../support/real_model.ts";
import { INSTRUCTIONS } from "./instructions.ts";
import { record, type Recording, store, type StoredTrace } from "./traces.ts";

const TEMPERATURE = 0.7;
const LIMIT = 384;
/** Generations at a time. */
const TOGETHER = 16;

async function generate(model: LanguageModel, content: string, seed: number): Promise<StoredTrace> {
  const { engine, tokenizer, template } = model;
  if (template === undefined) throw new TypeError("Cannot record: the model has no chat template");
  const text = template.render([{ role: "user", content }], { addGenerationPrompt: true });
  const prompt = encodePrompt(tokenizer, text);
  const sampling = { temperature: TEMPERATURE, seed: BigInt(seed) };
  const stream = await engine.submit({ prompt, sampling, maxTokens: LIMIT });
  return store(await record(stream));
}

const COMMAND = {
  usage: "record.ts",
  about: "Records generations of the real model and prints them as JSON.",
  options: { count: { value: "N", help: "how many (default: each instruction once)" } },
  operands: [0, 0],
} as const satisfies Command<string>;

await runCommand(COMMAND, async (given) => {
  const count = given.integer("count", 1, 10_000) ?? INSTRUCTIONS.length;
  const model = await loadModel({ model: REAL_MODEL ?? "smollm2", context: 1024 });
  const traces: StoredTrace[] = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next++;
      const instruction = INSTRUCTIONS[index % INSTRUCTIONS.length] ?? "";
      traces[index] = await generate(model, instruction, index);
      console.error(`${index}: ${atob(traces[index].end).length} tokens`);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  const recording: Recording = { model: model.id, temperature: TEMPERATURE, limit: LIMIT, traces };
  console.log(JSON.stringify(recording));
  await model.engine.dispose();
});
