/** Runs of the real model under policies, and what they tell of the machine. */
import type { Backend } from "../../../core/engine/backend.ts";
import type { SequenceRequest } from "../../../core/engine/engine.ts";
import { LocalEngine } from "../../../core/engine/local_engine.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";
import { FIRST_FIT, observeStepTime } from "../../../core/entropic/step_time.ts";
import { divide } from "./divide.ts";
import { drive, type Job, type Outcome } from "./drive.ts";
import { type Account, newAccount, timedBackend } from "./timed_backend.ts";
import type { Machine } from "./trace_backend.ts";
import { record, type Trace } from "./traces.ts";
import { inTurn, Turns } from "./turns.ts";

/** Milliseconds of a swapped block where none was swapped: a copy of 360 KiB. */
const SWAP = 0.1;

/** Generates all requests as fast as it goes, to learn their lengths and the machine's speed. */
export async function recordAll(
  requests: readonly SequenceRequest[],
  real: Backend,
  slots: number,
): Promise<{ traces: Trace[]; machine: Machine }> {
  const clock = { now: 0 }, account = newAccount();
  const [part] = divide(real, 1, real.limits.kvBlocks) as [Backend];
  const backend = timedBackend(part, { clock, account, onStep: () => {} });
  const engine = new LocalEngine(backend, { maxRunning: slots, eventBuffer: Infinity });
  const traces = await Promise.all(
    requests.map(async (request) => record(await engine.submit(request))),
  );
  await engine.dispose();
  return { traces, machine: machineOf([account]) };
}

/**
 * Serves the same requests under each policy, the policies' steps taking turns.
 *
 * @returns The outcomes under each, and the machine as it was meanwhile.
 */
export async function serveAll(
  jobs: readonly Job[],
  policies: readonly Policy[],
  { real, kvBlocks, slots }: {
    readonly real: Backend;
    readonly kvBlocks: number;
    readonly slots: number;
  },
): Promise<{ outcomes: Outcome[][]; machine: Machine }> {
  const parts = divide(real, policies.length, kvBlocks);
  const accounts = policies.map(newAccount);
  const turns = new Turns(policies.length);
  const outcomes = await Promise.all(policies.map((policy, i) => {
    const part = parts[i] as Backend, account = accounts[i] as Account;
    return drive(
      jobs,
      (clock, onStep) => inTurn(timedBackend(part, { clock, account, onStep }), turns, i),
      policy,
      slots,
    );
  }));
  return { outcomes, machine: machineOf(accounts) };
}

/** The machine's model that fits the steps best. */
function machineOf(accounts: readonly Account[]): Machine {
  const sum = (of: (account: Account) => number) => accounts.reduce((x, one) => x + of(one), 0);
  const { step, decode, prefill } = accounts.flatMap(({ steps }) => steps)
    .reduce((fit, one) => observeStepTime(fit, one, 1), FIRST_FIT);
  const swapped = sum(({ swappedBlocks }) => swappedBlocks);
  const swap = swapped > 0 ? sum(({ swapMilliseconds }) => swapMilliseconds) / swapped : SWAP;
  return { step, decode, prefill, swap };
}
