/** How large the workloads are: in full, some 35 minutes of one core; quick, under 4. */
import { BLOCK_SIZE } from "../../../core/engine/backend.ts";
import { POLICIES, type PolicyName } from "./policies.ts";
import type { Size, WorkloadName } from "./workloads.ts";

export interface Plan {
  readonly workloads: Readonly<Partial<Record<WorkloadName, Size>>>;
  readonly policies: readonly PolicyName[];
  readonly repeats: number;
  /** Positions on which quality is measured. */
  readonly scored: number;
}

/** Documents are multiples of 256 tokens: the engine's largest step, so that none is half stored. */
export const FULL: Plan = {
  workloads: {
    "short-chat": { document: 0, requests: 8, slots: 8, maxTokens: [64], fixedLength: true },
    "long-context": { document: 6144, requests: 8, slots: 8, maxTokens: [128], fixedLength: true },
    code: { document: 2048, requests: 8, slots: 8, maxTokens: [64], fixedLength: true },
    mixed: {
      document: 2048,
      requests: 16,
      slots: 4,
      maxTokens: [16, 32, 64, 128],
      load: 1,
      fixedLength: false,
    },
  },
  policies: Object.keys(POLICIES) as PolicyName[],
  repeats: 5,
  scored: 512,
};

export const QUICK: Plan = {
  workloads: {
    "long-context": { document: 6144, requests: 8, slots: 8, maxTokens: [64], fixedLength: true },
  },
  policies: ["baseline", "all"],
  repeats: 3,
  scored: 512,
};

/** Most tokens of a question or a short prompt. */
const PROMPT = 128;
/** A calibration's text and the positions on which quality is measured need no more. */
const LEAST_BLOCKS = 512;

/** KV blocks: room for the largest document, and for every request beside it. */
export function blocksFor({ workloads }: Plan): number {
  const needed = Object.values(workloads).map(({ document, requests, maxTokens }) => {
    const own = PROMPT + Math.max(...maxTokens) + BLOCK_SIZE;
    return Math.ceil((document + requests * own) / BLOCK_SIZE);
  });
  return Math.max(LEAST_BLOCKS, ...needed);
}
