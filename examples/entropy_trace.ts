// Where is the model uncertain? Prints each token with the entropy of the distribution it came from.
//   deno run -A examples/entropy_trace.ts "The capital of France is"
import { generate, loadModel } from "../mod.ts";

const prompt = Deno.args[0] ?? "The capital of France is";
const model = await loadModel();

let tau = 0;
let before: number | undefined;
for await (const { text, entropy } of generate(model, prompt, { maxTokens: 32 })) {
  if (before !== undefined) tau += Math.max(0, before - entropy);
  before = entropy;
  const bar = "█".repeat(Math.round(entropy * 4));
  console.log(`${JSON.stringify(text).padEnd(16)} ${entropy.toFixed(2).padStart(5)} nats ${bar}`);
}
console.log(`entropic time: ${tau.toFixed(2)} nats`);
await model.engine.dispose();
