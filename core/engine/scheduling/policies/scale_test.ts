import { assert } from "@std/assert";
import { queueOf } from "../../../../tests/eval/scheduling/long_queue.ts";
import { createPolicy, POLICIES } from "./mod.ts";

const WAITING = 10_000, RUNNING = 256;

Deno.test("a step with 10,000 waiting works out few keys, yet each of them in every 32 steps", () => {
  for (const name of POLICIES) {
    const policy = createPolicy(name);
    const seen = new Map<number, number>();
    let keys = 0;
    const scheduler = queueOf(WAITING, RUNNING, {
      ...policy,
      key(facts, now, workload) {
        keys++;
        if (!facts.resident) seen.set(facts.id, (seen.get(facts.id) ?? 0) + 1);
        return policy.key(facts, now, workload);
      },
    });
    const slice = policy.refreshSteps === 0
      ? 0
      : Math.ceil((WAITING + RUNNING) / policy.refreshSteps);
    for (let now = 1, steps = 2 * policy.refreshSteps + 1; now <= steps; now++) {
      keys = 0;
      if (now === policy.refreshSteps + 1) seen.clear();
      const { length } = scheduler.resident;
      assert(scheduler.schedule(now).entries.length > 0);
      assert(keys <= length + slice, `${name}: ${keys} keys in a step`);
    }
    if (policy.refreshSteps > 0) assert(seen.size >= scheduler.waiting, name);
  }
});
