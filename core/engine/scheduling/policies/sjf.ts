/** Shortest job first by what the request admits: the fewest tokens still allowed. */
import type { Policy } from "../policy.ts";

export const sjf: Policy = {
  name: "sjf",
  key: ({ maxTokens, generatedTokens }) => maxTokens - generatedTokens,
  refreshSteps: 0,
};
