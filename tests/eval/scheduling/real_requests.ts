/** Requests for the real model: short instructions in its chat template, with limits at random. */
import { encodePrompt } from "../../../core/model/chat_template.ts";
import { loadModel } from "../../../mod.ts";
import type { SequenceRequest } from "../../../core/engine/engine.ts";
import { randomNumbers } from "../../support/random.ts";
import { INSTRUCTIONS } from "./instructions.ts";

/** One of these tokens at most for each request. */
export const LIMITS = [16, 32, 64, 128, 256] as const;
const TEMPERATURE = 0.7;

/** Makes `count` requests; the same for the same seed. Each draws by a seed of its own. */
export type MakeRequests = (count: number, seed: number) => SequenceRequest[];

/**
 * @param spec A model as `deno task model` takes it.
 * @throws {TypeError} It has no chat template.
 */
export async function realRequests(spec: string): Promise<MakeRequests> {
  const { engine, tokenizer, template } = await loadModel({ model: spec, context: 64 });
  await engine.dispose();
  if (template === undefined) {
    throw new TypeError("Cannot make requests: there is no chat template");
  }
  return (count, seed) => {
    const random = randomNumbers(seed);
    const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
    return Array.from({ length: count }, (_, i) => {
      const messages = [{ role: "user", content: pick(INSTRUCTIONS) }];
      const text = template.render(messages, { addGenerationPrompt: true });
      const sampling = { temperature: TEMPERATURE, seed: BigInt(1000 * seed + i) };
      return { prompt: encodePrompt(tokenizer, text), sampling, maxTokens: pick(LIMITS) };
    });
  };
}
