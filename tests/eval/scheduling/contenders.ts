/** The policies that are compared, by the names that reports give them. */
import { createPolicy } from "../../../core/engine/scheduling/policies/mod.ts";
import type { Policy, SequenceFacts } from "../../../core/engine/scheduling/policy.ts";
import { FIRST_WORKLOAD } from "../../../core/entropic/workload.ts";
import { oracleSrpt } from "./oracle.ts";
import type { Arrival } from "./simulate.ts";
import type { Trace } from "./traces.ts";

export interface Contender {
  /** For one run; only the oracle looks at what comes. */
  readonly policy: (arrivals: readonly Arrival[]) => Policy;
  /** What of a simulated generation the engine sees; all where left out. */
  readonly view?: (trace: Trace) => Trace;
}

export const POLICIES = {
  fcfs: { policy: () => createPolicy("fcfs") },
  paper: { policy: () => createPolicy("paper") },
  mlfq: { policy: () => createPolicy("mlfq") },
  sjf: { policy: () => createPolicy("sjf") },
  entropic: { policy: () => createPolicy("entropic") },
  "oracle-srpt": { policy: oracleSrpt },
} satisfies Readonly<Record<string, Contender>>;

/** `entropic` with its knob set, and with one of its parts left out. */
export const VARIANTS = {
  "entropic --tail 20": { policy: () => createPolicy("entropic", 20) },
  "without entropies": {
    policy: () => createPolicy("entropic"),
    view: (trace: Trace) => ({ ...trace, entropy: new Float64Array(trace.length).fill(2) }),
  },
  "without host copies": { policy: () => onFacts((facts) => ({ ...facts, host: undefined })) },
  "without targets": { policy: () => onFacts((facts) => ({ ...facts, latencyTarget: undefined })) },
  "without memory": { policy: withoutMemory },
} satisfies Readonly<Record<string, Contender>>;

export const CONTENDERS: Readonly<Record<string, Contender>> = { ...POLICIES, ...VARIANTS };

function withoutMemory(): Policy {
  const policy = createPolicy("entropic");
  const { memory } = FIRST_WORKLOAD;
  return {
    ...policy,
    key: (facts, now, workload) => policy.key(facts, now, { ...workload, memory }),
  };
}

/** `entropic` on changed facts. */
function onFacts(change: (facts: SequenceFacts) => SequenceFacts): Policy {
  const policy = createPolicy("entropic");
  return {
    ...policy,
    key: (facts, now, workload) => policy.key(change(copy(facts)), now, workload),
  };
}

/** The facts as plain data: a sequence's own are getters, which spreading loses. */
function copy(facts: SequenceFacts): SequenceFacts {
  return {
    id: facts.id,
    arrival: facts.arrival,
    priority: facts.priority,
    promptTokens: facts.promptTokens,
    maxTokens: facts.maxTokens,
    generatedTokens: facts.generatedTokens,
    uncomputedTokens: facts.uncomputedTokens,
    resident: facts.resident,
    host: facts.host,
    latencyTarget: facts.latencyTarget,
    clock: facts.clock,
    evidence: facts.evidence,
  };
}
