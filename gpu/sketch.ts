/**
 * Where a layer's key sketch and the codes of its keys lie (`KeySketch` of the contract): maps as
 * floats [KV heads][dimensions][head size] for keys, then offsets [KV heads][dimensions], then maps
 * for queries; codes as [block][KV head][dimensions / 8][16 tokens] words of eight 4-bit levels,
 * each plus 8.
 */
import { BLOCK_SIZE } from "../core/engine/backend.ts";

export const CODE_TOKENS = BLOCK_SIZE;

/** Words of a token's code. */
export const codeWords = (dimensions: number): number => dimensions / 8;

/** Bytes of a block's codes in one layer. */
export const codeBlockBytes = (kvHeads: number, dimensions: number): number =>
  4 * kvHeads * codeWords(dimensions) * CODE_TOKENS;
