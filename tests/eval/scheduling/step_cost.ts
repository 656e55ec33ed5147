/**
 * What a scheduling step costs with a long queue, in milliseconds of processor time:
 * `deno run -A tests/eval/scheduling/step_cost.ts`
 */
import process from "node:process";
import { createPolicy, POLICIES } from "../../../core/engine/scheduling/policies/mod.ts";
import { queueOf } from "./long_queue.ts";

const WAITING = 10_000, RUNNING = 256, STEPS = 2000;

for (const name of POLICIES) {
  const scheduler = queueOf(WAITING, RUNNING, createPolicy(name));
  const times: number[] = [];
  for (let now = 1; now <= STEPS; now++) {
    const start = process.cpuUsage();
    scheduler.schedule(now);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1000);
  }
  const mean = times.reduce((sum, time) => sum + time, 0) / STEPS;
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(share * STEPS)] ?? 0).toFixed(3);
  console.log(
    `${name.padEnd(10)} mean ${mean.toFixed(3)} ms, median ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  );
}
