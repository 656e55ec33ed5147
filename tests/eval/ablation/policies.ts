/** The rows of the paper's table (arXiv 2603.03310): which layers are on, and what that asks for. */
import type { SequenceRequest } from "../../../core/engine/engine.ts";
import { createPolicy } from "../../../core/engine/scheduling/policies/mod.ts";
import type { Policy } from "../../../core/engine/scheduling/policy.ts";
import { type AttentionControl, DEFAULT_THRESHOLD } from "../../../core/entropic/pruning.ts";
import type { TemperatureLaw } from "../../../core/entropic/temperature.ts";

/** Micro, macro, meso. */
export type Layer = "sampling" | "scheduling" | "attention";

export const POLICIES = {
  baseline: [],
  sampling: ["sampling"],
  scheduling: ["scheduling"],
  attention: ["attention"],
  "sampling+scheduling": ["sampling", "scheduling"],
  "sampling+attention": ["sampling", "attention"],
  "scheduling+attention": ["scheduling", "attention"],
  all: ["sampling", "scheduling", "attention"],
  /** All layers in the paper's literal forms. */
  paper: ["sampling", "scheduling", "attention"],
} as const satisfies Record<string, readonly Layer[]>;

export type PolicyName = keyof typeof POLICIES;

/** How each layer works where it is on. */
export interface LayerSettings {
  /** Of every request; where the law starts from. */
  readonly temperature: number;
  readonly law: TemperatureLaw;
  /** H* of the law, in nats. */
  readonly target: number;
  /** Patience of the `entropic` scheduling policy; its default where left out. */
  readonly tail?: number;
  /** Share of the attention to keep, and blocks to read at least. */
  readonly attention: { readonly mass: number; readonly minBlocks: number };
}

/** What a workload asks for, before any layer has its say. */
export interface Asked extends Pick<SequenceRequest, "prompt" | "maxTokens" | "ignoreEos"> {
  readonly seed: bigint;
}

export function has(policy: PolicyName, layer: Layer): boolean {
  return (POLICIES[policy] as readonly Layer[]).includes(layer);
}

/** The request as a row of the table makes it. */
export function requestUnder(
  policy: PolicyName,
  { seed, ...asked }: Asked,
  settings: LayerSettings,
): SequenceRequest {
  const { temperature, target } = settings;
  const law = policy === "paper" ? "seed" : settings.law;
  const attention = attentionOf(policy, settings);
  const control = has(policy, "sampling") && { temperatureControl: { law, target } };
  return {
    ...asked,
    sampling: { temperature, seed, ...control },
    ...(attention && { attention }),
  };
}

/** How a row's requests attend, if not densely; numbers are given, so that no safeguard turns them. */
export function attentionOf(
  policy: PolicyName,
  { attention }: LayerSettings,
): AttentionControl | undefined {
  if (!has(policy, "attention")) return undefined;
  if (policy !== "paper") return { policy: "mass", ...attention };
  const { minBlocks } = attention;
  return { policy: "paper", threshold: DEFAULT_THRESHOLD, minBlocks };
}

/** Who runs first under a row of the table. */
export function schedulingOf(policy: PolicyName, { tail }: LayerSettings): Policy {
  if (!has(policy, "scheduling")) return createPolicy("fcfs");
  return createPolicy(policy === "paper" ? "paper" : "entropic", tail);
}
