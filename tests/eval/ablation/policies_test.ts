import { assertEquals } from "@std/assert";
import { DEFAULT_THRESHOLD } from "../../../core/entropic/pruning.ts";
import {
  type LayerSettings,
  POLICIES,
  type PolicyName,
  requestUnder,
  schedulingOf,
} from "./policies.ts";

const SETTINGS: LayerSettings = {
  temperature: 0.7,
  law: "stabilized",
  target: 1.25,
  attention: { mass: 0.9, minBlocks: 24 },
};
const ASKED = { prompt: [1, 2], maxTokens: 8, seed: 5n };

Deno.test("requestUnder changes nothing but what the policy's layers ask for", () => {
  const plain = { prompt: [1, 2], maxTokens: 8, sampling: { temperature: 0.7, seed: 5n } };
  assertEquals(requestUnder("baseline", ASKED, SETTINGS), plain);
  assertEquals(requestUnder("scheduling", ASKED, SETTINGS), plain);
  assertEquals(requestUnder("all", ASKED, SETTINGS), {
    ...plain,
    sampling: {
      ...plain.sampling,
      temperatureControl: { law: "stabilized", target: 1.25 },
    },
    attention: { policy: "mass", mass: 0.9, minBlocks: 24 },
  });
});

Deno.test("requestUnder takes the paper's literal forms in the row named for it", () => {
  const { sampling, attention } = requestUnder("paper", ASKED, SETTINGS);
  assertEquals(sampling.temperatureControl, { law: "seed", target: 1.25 });
  assertEquals(attention, { policy: "paper", threshold: DEFAULT_THRESHOLD, minBlocks: 24 });
});

Deno.test("schedulingOf takes the entropic policy where that layer is on", () => {
  assertEquals(schedulingOf("paper", SETTINGS).name, "paper");
  const entropic = (Object.keys(POLICIES) as PolicyName[])
    .filter((policy) => schedulingOf(policy, SETTINGS).name === "entropic");
  assertEquals(entropic, ["scheduling", "sampling+scheduling", "scheduling+attention", "all"]);
});
