/**
 * A real backend whose forwards move a virtual clock by the processor time that they took, so that
 * whatever else a machine is doing does not show in the figures.
 */
import process from "node:process";
import type { Backend } from "../../../core/engine/backend.ts";
import type { VirtualClock } from "./drive.ts";

export function timedBackend(real: Backend, clock: VirtualClock, onStep: () => void): Backend {
  async function timed<T>(run: () => Promise<T>): Promise<T> {
    const start = process.cpuUsage();
    const result = await run();
    const { user, system } = process.cpuUsage(start);
    clock.now += (user + system) / 1000;
    return result;
  }
  return {
    config: real.config,
    limits: real.limits,
    describe: () => real.describe(),
    async forward(batch, signal) {
      const result = await timed(() => real.forward(batch, signal));
      onStep();
      return result;
    },
    logits: (row) => timed(() => real.logits(row)),
    copyBlocks: (pairs) => timed(() => real.copyBlocks(pairs)),
    readBlocks: (blocks) => timed(() => real.readBlocks(blocks)),
    writeBlocks: (blocks, content) => timed(() => real.writeBlocks(blocks, content)),
    dispose: () => real.dispose(),
  };
}
