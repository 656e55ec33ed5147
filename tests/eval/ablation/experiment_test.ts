import { assert, assertEquals } from "@std/assert";
import { promptOf } from "../../support/engine_runs.ts";
import { ScriptedBackend } from "../../support/scripted_backend.ts";
import { type Experiment, runExperiment } from "./experiment.ts";
import { POLICIES, type PolicyName } from "./policies.ts";

const DOCUMENT = 1280;

/** A backend that prunes, with a document beyond the length below which attention stays dense. */
const backendOf = () =>
  new ScriptedBackend({
    prunes: true,
    prune: (logits) => logits.forEach((logit, id) => logits[id] = logit * 0.9),
    limits: { kvBlocks: 256 },
  });

const EXPERIMENT: Experiment = {
  workload: "long-context",
  size: { document: DOCUMENT, requests: 3, slots: 2, maxTokens: [6], fixedLength: true },
  prompts: {
    document: Uint32Array.from(promptOf(DOCUMENT)),
    about: [1, 2, 3].map((seed) => Uint32Array.from(promptOf(5, seed))),
    alone: [],
  },
  policies: Object.keys(POLICIES) as PolicyName[],
  repeats: 2,
  scored: 16,
  target: undefined,
  settings: { temperature: 0.7, law: "stabilized", attention: { mass: 0.9, minBlocks: 8 } },
  log: () => {},
};

Deno.test("runExperiment makes a row of every policy, pruned where its attention is", async () => {
  const { rows, synergy, target } = await runExperiment(backendOf(), EXPERIMENT);
  assertEquals(rows.map(({ policy }) => policy), EXPERIMENT.policies);
  assertEquals(synergy.map(({ column }) => column), ["latency", "throughput", "dtau_dc"]);
  assert(target > 0 && target < Math.log(64));
  for (const { policy, absolute, quality, repeats } of rows) {
    const pruned = (POLICIES[policy] as readonly string[]).includes("attention");
    assertEquals([absolute.tokens, repeats], [18, 2], policy);
    assertEquals(absolute.attention_bytes < 1, pruned, policy);
    assertEquals((quality.kl ?? NaN) > 0, pruned, `${policy}: ${JSON.stringify(quality)}`);
  }
});

Deno.test("runExperiment leaves short contexts dense, and lossless", async () => {
  const size = { ...EXPERIMENT.size, document: 64 };
  const prompts = { ...EXPERIMENT.prompts, document: EXPERIMENT.prompts.document.subarray(0, 64) };
  const policies: PolicyName[] = ["baseline", "attention"];
  const experiment = { ...EXPERIMENT, size, prompts, policies };
  const { rows, synergy } = await runExperiment(backendOf(), experiment);
  assertEquals(rows.map(({ quality: { kl, top1 } }) => [kl, top1]), [[0, 1], [0, 1]]);
  assertEquals(rows.map(({ absolute }) => absolute.attention_bytes), [1, 1]);
  assertEquals(synergy, []);
});
