import { assertAlmostEquals, assertEquals } from "@std/assert";
import { NO_EVIDENCE, observeDraw, observeEnd } from "./hazard.ts";
import { FIRST_WORKLOAD, observeStep, tokenTime } from "./workload.ts";

Deno.test("tokenTime shares the common part of a step over those who decode in it", () => {
  let workload = FIRST_WORKLOAD;
  for (let i = 0; i < 2000; i++) {
    const decodes = 4 + i % 9;
    const milliseconds = 6 + 4 * decodes;
    workload = observeStep(workload, { decodes, prefillTokens: 0, milliseconds, draws: [] });
  }
  assertAlmostEquals(tokenTime(workload), 6 / workload.batch + 4, 0.1);
  assertAlmostEquals(workload.batch, 8, 0.5);
});

Deno.test("observeStep learns from every draw", () => {
  const evidence = observeEnd(NO_EVIDENCE, { endProbability: 0.1, entropy: 2 });
  const draws = [true, false].map((ended) => ({ age: 5, evidence, ended }));
  const step = { decodes: 2, prefillTokens: 0, milliseconds: 10, draws };
  const { hazard } = observeStep(FIRST_WORKLOAD, step);
  assertEquals(hazard, draws.reduce(observeDraw, FIRST_WORKLOAD.hazard));
});
