import { assert, assertAlmostEquals, assertEquals } from "@std/assert";
import { NO_EVIDENCE, observeDraw, observeEnd } from "./hazard.ts";
import {
  FIRST_WORKLOAD,
  memoryPrice,
  MOST_MEMORY_PRICE,
  observeStep,
  stepTime,
  tokenTime,
} from "./workload.ts";

const AMPLE = { blocks: 100, short: false };

Deno.test("tokenTime shares the common part of a step over those who decode in it", () => {
  let workload = FIRST_WORKLOAD;
  for (let i = 0; i < 2000; i++) {
    const decodes = 4 + i % 9;
    const milliseconds = 6 + 4 * decodes;
    const step = { decodes, prefillTokens: 0, milliseconds, draws: [] };
    workload = observeStep(workload, step, AMPLE);
  }
  assertAlmostEquals(tokenTime(workload), 6 / workload.batch + 4, 0.1);
  assertAlmostEquals(stepTime(workload), workload.batch * tokenTime(workload), 1e-9);
  assertAlmostEquals(workload.batch, 8, 0.5);
});

Deno.test("observeStep learns from every draw", () => {
  const evidence = observeEnd(NO_EVIDENCE, { endProbability: 0.1, entropy: 2 });
  const draws = [true, false].map((ended) => ({ age: 5, evidence, ended }));
  const step = { decodes: 2, prefillTokens: 0, milliseconds: 10, draws };
  const { hazard } = observeStep(FIRST_WORKLOAD, step, AMPLE);
  assertEquals(hazard, draws.reduce(observeDraw, FIRST_WORKLOAD.hazard));
});

Deno.test("memoryPrice asks for memory only where blocks are short", () => {
  const step = { decodes: 4, prefillTokens: 0, milliseconds: 10, draws: [] };
  const after = (short: boolean) => {
    let workload = FIRST_WORKLOAD;
    for (let i = 0; i < 500; i++) workload = observeStep(workload, step, { blocks: 40, short });
    return workload;
  };
  for (const held of [0, 10, 400]) assertEquals(memoryPrice(held, FIRST_WORKLOAD), 1);
  for (const held of [0, 10, 400]) assertEquals(memoryPrice(held, after(false)), 1);
  const scarce = after(true);
  const prices = [1, 5, 10, 20].map((held) => memoryPrice(held, scarce));
  assert(prices.every((price, i) => i === 0 || price > (prices[i - 1] ?? 0)));
  assertAlmostEquals(memoryPrice(10, scarce), 1, 1e-3, "an equal share of 40 among 4");
  assertAlmostEquals(memoryPrice(1e6, scarce), MOST_MEMORY_PRICE, 1e-3);
  assert(memoryPrice(0, scarce) >= 0.75);
});
