/** `deno task generate "prompt"`: one completion on standard output, as it is made. */
import process from "node:process";
import {
  generate,
  type GeneratedToken,
  type GenerationSummary,
  type LanguageModel,
  loadModel,
} from "../../../mod.ts";
import { ATTENTION_OPTIONS, attentionSettings } from "./attention_options.ts";
import { loadOptions, MODEL_OPTIONS } from "./model_options.ts";
import { type Arguments, type Command, runCommand } from "./options.ts";

const COMMAND = {
  usage: 'generate "prompt"',
  about: "Continues a text, or with --chat answers a message; prints the text as it is made.",
  options: {
    ...MODEL_OPTIONS,
    ...ATTENTION_OPTIONS,
    "max-tokens": { value: "N", help: "most tokens to generate (default 128)" },
    temperature: { value: "T", help: "0 is greedy (default 0)" },
    "top-p": { value: "P", help: "keep the smallest set of tokens with this mass (default 1)" },
    "top-k": { value: "K", help: "keep the K most likely tokens; 0 keeps all (default 0)" },
    seed: { value: "N", help: "for temperatures above 0 (default 0)" },
    chat: { help: "send the prompt as a user's message, through the model's chat template" },
    json: { help: "print tokens, entropies, tau and timings as one JSON document" },
    help: { help: "show this help" },
  },
  operands: [1, 1],
} as const satisfies Command<string>;

type Given = Arguments<keyof typeof COMMAND.options>;

async function main(given: Given): Promise<void> {
  const [text = ""] = given.operands;
  const options = generateOptions(given);
  const interrupt = new AbortController();
  process.once("SIGINT", () => interrupt.abort(new Error("interrupted")));
  const began = performance.now();
  const attention = attentionSettings(given);
  const model = await loadModel({ ...loadOptions(given), attention, signal: interrupt.signal });
  const loadMilliseconds = performance.now() - began;
  try {
    const prompt = given.flag("chat") ? [{ role: "user", content: text }] : text;
    const tokens = generate(model, prompt, { ...options, signal: interrupt.signal });
    if (given.flag("json")) await printJson(model, text, tokens, loadMilliseconds);
    else await printText(tokens);
  } finally {
    await model.engine.dispose();
  }
}

function generateOptions(given: Given) {
  const options = {
    maxTokens: given.integer("max-tokens", 0, 2 ** 24),
    temperature: given.number("temperature", 0, Infinity),
    topP: given.number("top-p", Number.MIN_VALUE, 1),
    topK: given.integer("top-k", 0, 2 ** 31),
  };
  return {
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
    seed: BigInt(given.integer("seed", 0, Number.MAX_SAFE_INTEGER) ?? 0),
  };
}

type Tokens = AsyncGenerator<GeneratedToken, GenerationSummary, void>;

async function printText(tokens: Tokens): Promise<void> {
  for (;;) {
    const { value, done } = await tokens.next();
    process.stdout.write(value.text);
    if (done) break;
  }
  process.stdout.write("\n");
}

async function printJson(
  model: LanguageModel,
  prompt: string,
  tokens: Tokens,
  loadMilliseconds: number,
): Promise<void> {
  const listed: object[] = [];
  let text = "";
  for (;;) {
    const { value, done } = await tokens.next();
    text += value.text;
    if (done) {
      const { reason, usage, timings, tau, cost, attention } = value;
      const { backend } = model.engine.info;
      console.log(JSON.stringify({
        model: model.id,
        backend,
        prompt,
        text,
        finishReason: reason,
        tokens: listed,
        usage,
        tau,
        cost,
        attention,
        timings: { load: loadMilliseconds, ...timings },
      }));
      return;
    }
    const { token, text: piece, top: _, ...stats } = value;
    listed.push({ id: token, text: piece, ...stats });
  }
}

await runCommand(COMMAND, main);
