/**
 * Recorded generations of a real model, for simulating schedules: what each drew, seen as a policy
 * sees it. A byte for each entropy (steps of 0.05 nats) and end probability (steps of 0.1 in its
 * negative log), in base64.
 */
import type { SequenceStream } from "../../../core/engine/engine.ts";

/** One recorded generation. */
export interface Trace {
  /** Prompt tokens that were not in the prefix cache. */
  readonly promptTokens: number;
  /** Tokens generated. */
  readonly length: number;
  /** Whether the model ended it; else it met the recording's limit. */
  readonly ended: boolean;
  /** Nats, of the distribution that each token was drawn from; shape [length]. */
  readonly entropy: Float64Array;
  /** That it gave to the end tokens; shape [length]. */
  readonly endProbability: Float64Array;
}

/** As it is stored. */
export interface StoredTrace {
  readonly prompt: number;
  readonly ended: boolean;
  readonly entropy: string;
  readonly end: string;
}

export interface Recording {
  readonly model: string;
  readonly temperature: number;
  /** Most tokens of a generation. */
  readonly limit: number;
  readonly traces: readonly StoredTrace[];
}

/** Records what an engine generates, to its end. */
export async function record(stream: SequenceStream): Promise<Trace> {
  const entropy: number[] = [], endProbability: number[] = [];
  let promptTokens = 0, ended = false;
  for await (const event of stream) {
    if (event.type === "token") {
      entropy.push(event.entropy);
      endProbability.push(event.endProbability);
    } else if (event.type === "end") {
      ended = event.reason === "stop";
      promptTokens = event.usage.promptTokens - event.usage.cachedTokens;
    }
  }
  return {
    promptTokens,
    ended,
    length: entropy.length,
    entropy: Float64Array.from(entropy),
    endProbability: Float64Array.from(endProbability),
  };
}

export function store(trace: Omit<Trace, "length">): StoredTrace {
  return {
    prompt: trace.promptTokens,
    ended: trace.ended,
    entropy: encode(trace.entropy, (nats) => nats * 20),
    end: encode(trace.endProbability, (p) => -10 * Math.log(p)),
  };
}

export function restore({ prompt, ended, entropy, end }: StoredTrace): Trace {
  const nats = decode(entropy, (byte) => byte / 20);
  const endProbability = decode(end, (byte) => byte === 255 ? 0 : Math.exp(-byte / 10));
  return { promptTokens: prompt, ended, length: nats.length, entropy: nats, endProbability };
}

function encode(values: Float64Array, scale: (value: number) => number): string {
  const bytes = Uint8Array.from(values, (value) => Math.min(255, Math.round(scale(value))));
  return btoa(String.fromCharCode(...bytes));
}

function decode(text: string, unscale: (byte: number) => number): Float64Array {
  return Float64Array.from(atob(text), (character) => unscale(character.charCodeAt(0)));
}
