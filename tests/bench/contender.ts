/** What a benchmark compares: this engine and its peers, behind one interface. */
import type { Arithmetic } from "../../core/engine/arithmetic.ts";
import type { AttentionPlan } from "../../core/engine/backend.ts";

/** What is measured. */
export type Figure = "decode" | "prefill" | "load" | "cold-start";

/** One workload; the same for both sides of a row. */
export interface Workload {
  readonly figure: Figure;
  /** Path of the model file. */
  readonly model: string;
  readonly threads: number;
  /** Sequences that decode together. */
  readonly batch: number;
  /** Tokens in the KV cache of each sequence before the first one that counts. */
  readonly depth: number;
  /** Tokens that count, of each sequence: generated ones, or those of the prompt. */
  readonly tokens: number;
  /** How this engine attends as it decodes, densely where left out. Peers always attend densely. */
  readonly attention?: AttentionPlan;
  /** Of this engine, `int8` where left out. */
  readonly arithmetic?: Arithmetic;
}

export interface Contender {
  /** As the row names it, with its version where that is known. */
  readonly name: string;
  /** Its first run is as good as the others: what it has to warm up it does in each. */
  readonly warmsUp?: boolean;
  /**
   * One run. Decode and prefill in tokens a second over the whole batch, load and cold start in
   * seconds. What it loads may stay loaded for the next run of the same workload.
   */
  measure(workload: Workload): Promise<number>;
  dispose(): Promise<void>;
}

/** A peer or tool that is not there; the message says how to install it. */
export class MissingPeerError extends Error {
  override readonly name = "MissingPeerError";
}

/** How to get every peer. */
export const INSTALL_HINT = "install the peers: deno run -A tests/bench/peers/install.ts";
