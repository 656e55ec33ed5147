import { assertEquals } from "@std/assert";
import { StepLoop } from "./step_loop.ts";

Deno.test("StepLoop steps until there is nothing to do, and again when woken", async () => {
  let work = 3, steps = 0;
  const loop = new StepLoop(() => {
    steps++;
    return Promise.resolve(--work > 0);
  });
  loop.wake();
  loop.wake();
  await loop.idle();
  assertEquals(steps, 3);
  work = 1;
  loop.wake();
  await loop.idle();
  assertEquals(steps, 4);
});

Deno.test("StepLoop does not lose a wake that comes during the last step", async () => {
  let steps = 0;
  const loop = new StepLoop(async () => {
    steps++;
    if (steps === 1) loop.wake();
    await Promise.resolve();
    return false;
  });
  loop.wake();
  await loop.idle();
  assertEquals(steps, 2);
});
