/**
 * A real backend whose calls move a virtual clock by the processor time that they took, so that
 * whatever else a machine is doing shows little in the figures. Keeps an account of each step, for a
 * model of the machine.
 */
import process from "node:process";
import type { Backend } from "../../../core/engine/backend.ts";
import type { VirtualClock } from "./drive.ts";

/** A step as it went. */
export interface TimedStep {
  readonly decodes: number;
  readonly prefillTokens: number;
  /** Of the forward pass, and of the reads of logits after it. */
  milliseconds: number;
}

export interface Account {
  readonly steps: TimedStep[];
  /** Blocks that moved to or from host memory, and what that took. */
  swappedBlocks: number;
  swapMilliseconds: number;
}

export function newAccount(): Account {
  return { steps: [], swappedBlocks: 0, swapMilliseconds: 0 };
}

export function timedBackend(
  real: Backend,
  { clock, account, onStep }: {
    readonly clock: VirtualClock;
    readonly account: Account;
    /** Told after each forward, with the clock at its end. */
    readonly onStep: () => void;
  },
): Backend {
  async function timed<T>(run: () => Promise<T>, book: (milliseconds: number) => void) {
    const start = process.cpuUsage();
    const result = await run();
    const { user, system } = process.cpuUsage(start);
    const milliseconds = (user + system) / 1000;
    clock.now += milliseconds;
    book(milliseconds);
    return result;
  }
  const bookSwap = (blocks: number) => (milliseconds: number) => {
    account.swappedBlocks += blocks;
    account.swapMilliseconds += milliseconds;
  };
  const bookStep = (milliseconds: number) => {
    const step = account.steps.at(-1);
    if (step !== undefined) step.milliseconds += milliseconds;
  };
  return {
    config: real.config,
    limits: real.limits,
    describe: () => real.describe(),
    async forward(batch, signal) {
      const prompts = batch.filter(({ tokens }) => tokens.length > 1);
      const prefillTokens = prompts.reduce((sum, { tokens }) => sum + tokens.length, 0);
      account.steps.push({
        decodes: batch.length - prompts.length,
        prefillTokens,
        milliseconds: 0,
      });
      const result = await timed(() => real.forward(batch, signal), bookStep);
      onStep();
      return result;
    },
    logits: (row) => timed(() => real.logits(row), bookStep),
    logitsOf: (row, ids) => timed(() => real.logitsOf(row, ids), bookStep),
    draw: (row, draw) => timed(() => real.draw(row, draw), bookStep),
    tempered: (row, temperature) => timed(() => real.tempered(row, temperature), bookStep),
    copyBlocks: (pairs) => timed(() => real.copyBlocks(pairs), bookStep),
    readBlocks: (blocks) => timed(() => real.readBlocks(blocks), bookSwap(blocks.length)),
    writeBlocks: (blocks, content) =>
      timed(() => real.writeBlocks(blocks, content), bookSwap(blocks.length)),
    dispose: () => real.dispose(),
  };
}
