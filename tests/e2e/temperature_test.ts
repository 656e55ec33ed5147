/** The temperature laws on the real model's own distributions. */
import { assert, assertAlmostEquals } from "@std/assert";
import type { Engine, TemperatureReport } from "../../core/engine/engine.ts";
import type { TemperatureLaw } from "../../core/entropic/temperature.ts";
import { loadModel } from "../../mod.ts";
import { REAL_MODEL } from "../support/real_model.ts";

const TARGET = 1.5;
const PROMPTS = [
  "The old lighthouse stood at the end of the pier, and every evening",
  "In 1789 the people of Paris",
  "Dear Anna,\n\nI am writing to you because",
];

async function steer(
  engine: Engine,
  prompt: Uint32Array,
  law: TemperatureLaw,
): Promise<TemperatureReport> {
  const sampling = { seed: 1n, temperatureControl: { law, target: TARGET } };
  for await (
    const event of await engine.submit({ prompt, sampling, maxTokens: 120, ignoreEos: true })
  ) {
    if (event.type === "end" && event.temperature !== undefined) return event.temperature;
  }
  throw new Error("The stream has no report");
}

Deno.test({
  name: "on real logits seed sits on a rail, stabilized and same-step hold the target",
  ignore: REAL_MODEL === undefined,
  async fn() {
    const { engine, tokenizer } = await loadModel({ model: REAL_MODEL ?? "", context: 256 });
    const under = async (law: TemperatureLaw) => {
      const prompts = PROMPTS.map((text) => tokenizer.encode(text));
      const reports = await Promise.all(prompts.map((prompt) => steer(engine, prompt, law)));
      return (of: (report: TemperatureReport) => number) =>
        reports.reduce((sum, report) => sum + of(report), 0) / reports.length;
    };
    const seed = await under("seed");
    const stabilized = await under("stabilized");
    const sameStep = await under("same-step");
    await engine.dispose();
    assert(seed(({ railShare }) => railShare) > 0.5);
    assert(stabilized(({ railShare }) => railShare) < 0.05);
    // It starts at T = 1, above the target, and takes some 20 of its 120 tokens to come down.
    assertAlmostEquals(stabilized(({ meanEntropy }) => meanEntropy), TARGET, 0.2 * TARGET);
    assertAlmostEquals(sameStep(({ meanEntropy }) => meanEntropy), TARGET, 0.05 * TARGET);
    const deviation = ({ entropyDeviation }: TemperatureReport) => entropyDeviation;
    assert(sameStep(deviation) < 0.5 * stabilized(deviation));
  },
});
