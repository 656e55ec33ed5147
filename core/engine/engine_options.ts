/** What an engine can be told, and the defaults that fit its backend. */
import {
  attentionInfo,
  attentionRules,
  type AttentionSettings,
} from "./attention/attention_settings.ts";
import { type Backend, BLOCK_SIZE } from "./backend.ts";
import type { BlockHash } from "./kv/block_pool.ts";
import type { EngineInfo } from "./engine.ts";
import { fcfs, type Policy } from "./scheduling/policy.ts";
import type { SchedulerOptions } from "./scheduling/scheduler.ts";

export interface LocalEngineOptions {
  /** Who runs first; `fcfs` where left out. */
  readonly policy?: Policy;
  /** Most sequences in one step; 64, or what the backend's limits allow. */
  readonly maxRunning?: number;
  /** Most sequences without KV blocks before `submit` refuses; 1024. */
  readonly maxWaiting?: number;
  /** Most new tokens in one step; what the backend allows. */
  readonly stepTokens?: number;
  /** Most prompt tokens in a step in which other sequences decode; 32. */
  readonly prefillChunk?: number;
  /** Host memory for the KV of preempted sequences, in bytes; as much as the backend's own KV. */
  readonly hostBytes?: number;
  /** How generated tokens attend; densely where left out. */
  readonly attention?: AttentionSettings;
  /** Entropy below this, in nats, counts as this much in entropic time; 0. */
  readonly entropyFloor?: number;
  /** Takes lines for people, for what an operator should know. */
  readonly log?: (line: string) => void;
  /** Events of a sequence that may lie unread before it is paused; 64. */
  readonly eventBuffer?: number;
  /** Milliseconds on a clock that never goes back; `performance.now`. */
  readonly now?: () => number;
  /** Builds a new backend after a fatal error; without it the engine stays down. */
  readonly recover?: () => Promise<Backend>;
  /** Hash of KV blocks, for tests. */
  readonly hashBlock?: BlockHash;
}

/** Whole numbers, from 1 on but where 0 makes sense. */
const LEAST = {
  maxRunning: 1,
  maxWaiting: 1,
  stepTokens: 1,
  prefillChunk: 1,
  hostBytes: 0,
  eventBuffer: 1,
} as const;

/**
 * What an engine checks before anything else; also for those who first have a model to load.
 *
 * @throws {RangeError} An option is out of range; the message says what is allowed.
 * @throws {TypeError} There is no such setting of attention.
 */
export function checkOptions(options: LocalEngineOptions): void {
  for (const [name, least] of Object.entries(LEAST)) {
    const value = options[name as keyof typeof LEAST];
    const whole = Number.isInteger(value) || value === Infinity;
    if (value === undefined || (whole && value >= least)) continue;
    throw new RangeError(`Cannot use ${name} ${value}: it takes a whole number from ${least} on`);
  }
  const { entropyFloor = 0, attention } = options;
  attentionRules(attention);
  if (!(entropyFloor >= 0 && entropyFloor < Infinity)) {
    throw new RangeError(
      `Cannot use entropy floor ${entropyFloor}: it takes a finite number from 0 on`,
    );
  }
}

export function schedulerOptions(backend: Backend, options: LocalEngineOptions): SchedulerOptions {
  const { limits } = backend;
  const { kvBytes } = backend.describe();
  const stepTokens = Math.min(options.stepTokens ?? Infinity, limits.maxBatchTokens);
  // No more than this can run, or decoding would leave no token or row for a prompt.
  const mostRunning = Math.min(stepTokens, limits.maxOutputRows);
  return {
    policy: options.policy ?? fcfs,
    maxRunning: Math.min(options.maxRunning ?? 64, mostRunning),
    stepTokens,
    prefillChunk: options.prefillChunk ?? 32,
    maxOutputRows: limits.maxOutputRows,
    hostBytes: options.hostBytes ?? kvBytes,
    blockBytes: kvBytes / limits.kvBlocks,
  };
}

export function engineInfo(backend: Backend, options: LocalEngineOptions): EngineInfo {
  const { limits } = backend;
  const { entropyFloor = 0 } = options;
  return {
    config: backend.config,
    backend: backend.describe(),
    limits,
    policy: (options.policy ?? fcfs).name,
    attention: attentionInfo(attentionRules(options.attention), backend.describe()),
    entropyFloor,
    maxSequenceTokens: Math.min(limits.contextLength, limits.kvBlocks * BLOCK_SIZE),
  };
}
