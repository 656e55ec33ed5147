/**
 * `deno task eval [NAME…] [--json]`: quality figures on a real model. `--json` prints one document;
 * everything else goes to stderr.
 */
import { type Command, runCommand } from "../../core/host/cli/options.ts";
import type { LanguageModel } from "../../core/language_model.ts";
import { loadModel } from "../../mod.ts";
import { REAL_MODEL } from "../support/real_model.ts";
import { evaluateDivergence } from "./divergence.ts";
import { evaluatePasskey } from "./passkey.ts";
import { engineScore, perplexity } from "./perplexity.ts";
import { evaluateSampling } from "./sampling.ts";
import { evaluateLive } from "./scheduling/live_report.ts";
import { evaluateScheduling } from "./scheduling/simulation.ts";
import { mobyDick, stateOfTheUnion } from "./texts.ts";

/** Tokens in a window of the perplexity. */
const WINDOW = 1024;

/** `native`: what `llama-perplexity -c 1024` gives for SmolLM2-135M-Instruct Q4_1. */
const TEXTS = [
  { text: "moby-dick", read: mobyDick, windows: 8, native: 53.43 },
  { text: "sotu-2015", read: stateOfTheUnion, windows: 7, native: 21.75 },
];

interface PerplexityResult {
  readonly name: "ppl";
  readonly text: string;
  readonly ppl: number;
  readonly error: number;
  readonly native: number;
  readonly ratio: number;
  readonly windows: number;
}

async function evaluatePerplexity(model: LanguageModel): Promise<PerplexityResult[]> {
  const results: PerplexityResult[] = [];
  for (const { text, read, windows: most, native } of TEXTS) {
    const tokens = model.tokenizer.encode(await read());
    const { ppl, error, windows } = await perplexity(
      tokens,
      engineScore(model.engine),
      WINDOW,
      most,
    );
    results.push({ name: "ppl", text, ppl, error, native, ratio: ppl / native, windows });
    console.error(
      `ppl ${text}: ${ppl.toFixed(2)} ± ${error.toFixed(2)}, native ${native}, ` +
        `ratio ${(ppl / native).toFixed(4)}`,
    );
  }
  return results;
}

/** From a model, as `deno task model` takes it, to rows of results. */
type Evaluate = (spec: string) => Promise<readonly { readonly name: string }[]>;

const EVALUATIONS: Readonly<Record<string, Evaluate>> = {
  ppl: withModel(evaluatePerplexity),
  sampling: withModel(evaluateSampling),
  divergence: evaluateDivergence,
  passkey: evaluatePasskey,
  scheduling: evaluateScheduling,
  "scheduling-live": evaluateLive,
};

/** Those that take a quarter of an hour or more: they run when named. */
const LONG = ["scheduling-live"];

/** Lends an evaluation a model with its engine. */
function withModel<Row>(evaluate: (model: LanguageModel) => Promise<readonly Row[]>) {
  return async (spec: string): Promise<readonly Row[]> => {
    const model = await loadModel({ model: spec, context: 2 * WINDOW });
    try {
      return await evaluate(model);
    } finally {
      await model.engine.dispose();
    }
  };
}

const COMMAND = {
  usage: "eval [NAME…]",
  about: `Evaluates a model's quality: ${Object.keys(EVALUATIONS).join(", ")}`,
  options: {
    model: { value: "M", help: "a model as `deno task model` takes it (default SmolLM2)" },
    json: { help: "print one JSON document" },
  },
  operands: [0, 100],
} as const satisfies Command<string>;

await runCommand(COMMAND, async (given) => {
  const names = given.operands.length > 0
    ? given.operands
    : Object.keys(EVALUATIONS).filter((name) => !LONG.includes(name));
  const unknown = names.filter((name) => !Object.hasOwn(EVALUATIONS, name));
  if (unknown.length > 0) {
    const allowed = Object.keys(EVALUATIONS).join(", ");
    throw new RangeError(`Cannot evaluate "${unknown.join(", ")}": evaluations are ${allowed}`);
  }
  const spec = given.text("model") ?? REAL_MODEL ?? "smollm2";
  const results: { readonly name: string }[] = [];
  for (const name of names) results.push(...await EVALUATIONS[name]?.(spec) ?? []);
  if (given.flag("json")) console.log(JSON.stringify({ results }, null, 2));
});
