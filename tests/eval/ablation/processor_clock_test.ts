import { assert, assertEquals } from "@std/assert";
import { ProcessorClock } from "./processor_clock.ts";

Deno.test("ProcessorClock runs on while this process computes", () => {
  const clock = new ProcessorClock();
  const start = clock.now();
  let sum = 0;
  for (let i = 0; i < 1e7; i++) sum += Math.sqrt(i);
  assert(sum > 0 && clock.now() > start);
});

Deno.test("ProcessorClock skips ahead, and never back", () => {
  const clock = new ProcessorClock();
  const later = clock.now() + 1e6;
  clock.skipTo(later);
  assert(clock.now() >= later);
  clock.skipTo(0);
  assert(clock.now() >= later);
});

Deno.test("ProcessorClock holds still at a given time while it is told to", () => {
  const clock = new ProcessorClock();
  assertEquals(clock.at(7, () => clock.now()), 7);
  assert(clock.now() !== 7);
});
