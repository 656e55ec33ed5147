/** The limits of a backend, from what its creator asked for. */
import type { ModelConfig } from "../model/config.ts";
import { type BackendLimits, BLOCK_SIZE } from "./backend.ts";

/**
 * Where left out: the model's own context length; KV blocks for four contexts, or as many as are
 * affordable, at least one context; 256 tokens and 64 output rows a step; 64 most likely tokens.
 *
 * @param affordable KV blocks that may be taken without being asked for.
 * @throws {RangeError} A limit is not a whole number above 0.
 */
export function backendLimits(
  config: ModelConfig,
  asked: Partial<BackendLimits>,
  affordable: number,
): BackendLimits {
  const contextLength = asked.contextLength ?? config.contextLength;
  const contextBlocks = Math.ceil(contextLength / BLOCK_SIZE);
  const limits = {
    contextLength,
    kvBlocks: asked.kvBlocks ?? Math.max(contextBlocks, Math.min(4 * contextBlocks, affordable)),
    maxBatchTokens: asked.maxBatchTokens ?? 256,
    maxOutputRows: asked.maxOutputRows ?? 64,
    topK: Math.min(asked.topK ?? 64, config.vocabularySize),
  };
  for (const [name, value] of Object.entries(limits)) checkCount(name, value);
  return limits;
}

/** @throws {RangeError} The option is not a whole number above 0. */
export function checkCount(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return;
  throw new RangeError(`Cannot create backend: ${name} is ${value}, allowed is 1 or more`);
}
