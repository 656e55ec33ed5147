/**
 * Runs of scheduling policies on the real model: real prompts, kernels and text, arrivals by processor
 * time. A run before finds each request's length and the machine's speed; from these follow the
 * arrivals, what the oracle knows, and what the simulation makes of the same requests.
 */
import { openFiles } from "../../../core/host/store/file_source.ts";
import { resolveModel } from "../../../core/host/store/mod.ts";
import { openModel } from "../../../core/model/gguf/open_model.ts";
import { createWasmBackend } from "../../../wasm/backend.ts";
import { randomNumbers } from "../../support/random.ts";
import { spread } from "./arrivals.ts";
import { POLICIES } from "./contenders.ts";
import type { Outcome } from "./drive.ts";
import { realRequests } from "./real_requests.ts";
import { recordAll, serveAll } from "./real_run.ts";
import { simulate } from "./simulate.ts";
import type { Machine } from "./trace_backend.ts";
import type { Trace } from "./traces.ts";

export type LivePolicy = keyof typeof POLICIES;
export const LIVE_POLICIES = Object.keys(POLICIES) as LivePolicy[];

const SLOTS = 8;
/** Blocks: enough for all, and for about half of the slots. */
const MEMORY = { plentiful: 512, scarce: 40 };
/** Shape of the gamma distribution of the gaps. */
const ARRIVALS = { bursty: 0.5, poisson: 1 };

/** A policy's run over a cell's requests. */
export interface LiveRun {
  readonly seed: number;
  readonly memory: string;
  readonly arrivals: string;
  readonly load: number;
  readonly policy: LivePolicy;
  /** As it was before, from which the arrivals follow, and while the policies ran. */
  readonly before: Machine;
  readonly machine: Machine;
  readonly outcomes: readonly Outcome[];
  /** What the simulation says, with the machine as it was. */
  readonly predicted: readonly Outcome[];
}

export interface LivePlan {
  /** A run of each policy in each cell for each. */
  readonly seeds: readonly number[];
  /** Requests in a run. */
  readonly count: number;
  /** Work that comes over work that can be done. */
  readonly load: number;
  /** Text that the names of the cells have. */
  readonly only: string;
  readonly policies: readonly LivePolicy[];
}

/** @param spec A model as `deno task model` takes it. */
export async function* liveRuns(spec: string, plan: LivePlan): AsyncGenerator<LiveRun> {
  const { policies, load } = plan;
  const { files } = await openModel(await openFiles((await resolveModel(spec)).paths));
  const kvBlocks = MEMORY.plentiful * policies.length;
  const real = await createWasmBackend({ files, kvBlocks, contextLength: 1024 });
  const requestsOf = await realRequests(spec);
  for (const seed of plan.seeds) {
    const requests = requestsOf(plan.count, seed);
    const { traces, machine: before } = await recordAll(requests, real, SLOTS);
    const asked = requests.map((request, i) => {
      return { trace: traces[i] as Trace, maxTokens: request.maxTokens, request };
    });
    for (const [arrivals, shape] of Object.entries(ARRIVALS)) {
      const arriving = spread(asked, { load, shape }, before, SLOTS, randomNumbers(seed + 1000));
      for (const [memory, kvBlocks] of Object.entries(MEMORY)) {
        if (!`${memory} ${arrivals}`.includes(plan.only)) continue;
        const create = () => policies.map((name) => POLICIES[name].policy(arriving));
        const { outcomes, machine } = await serveAll(arriving, create(), {
          real,
          kvBlocks,
          slots: SLOTS,
        });
        const scenario = { arrivals: arriving, machine, kvBlocks, slots: SLOTS };
        const predicted = await Promise.all(create().map((policy) => simulate(scenario, policy)));
        for (const [i, policy] of policies.entries()) {
          const cell = { seed, memory, arrivals, load, policy, before, machine };
          yield { ...cell, outcomes: outcomes[i] ?? [], predicted: predicted[i] ?? [] };
        }
      }
    }
  }
  await real.dispose();
}
