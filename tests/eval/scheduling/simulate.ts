/** Runs the real engine over recorded generations, with arrivals and steps on a virtual clock. */
import type { SequenceRequest } from "../../../core/engine/engine.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";
import { drive, type Outcome } from "./drive.ts";
import { type Machine, promptOf, TraceBackend } from "./trace_backend.ts";
import type { Trace } from "./traces.ts";

export interface Arrival {
  /** Milliseconds. */
  readonly at: number;
  readonly trace: Trace;
  readonly maxTokens: number;
  /** What else the request asks of a policy. */
  readonly wishes?: Pick<SequenceRequest, "priority" | "latencyTarget">;
}

export interface Scenario {
  /** In order of time. */
  readonly arrivals: readonly Arrival[];
  readonly machine: Machine;
  readonly kvBlocks: number;
  /** Sequences in a step. */
  readonly slots: number;
}

/** @returns The outcome of each arrival, in order. */
export function simulate(scenario: Scenario, policy: Policy): Promise<Outcome[]> {
  const { arrivals, machine, kvBlocks, slots } = scenario;
  const traces = arrivals.map(({ trace }) => trace);
  const sampling = { temperature: 0, seed: 0n };
  const jobs = arrivals.map(({ at, trace, maxTokens, wishes }, index) => ({
    at,
    request: { prompt: promptOf(index, trace), maxTokens, sampling, ...wishes },
  }));
  return drive(
    jobs,
    (clock, onStep) => new TraceBackend(traces, kvBlocks, machine, clock, onStep),
    policy,
    slots,
  );
}
