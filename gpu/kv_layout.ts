/**
 * How keys and values lie in a layer's cache, as 32-bit words:
 *
 * ```text
 * [block][KV head] record:  keys   [head size / unit][16 tokens][unit]
 *                           values [16 tokens][head size]
 * ```
 * where a unit is what fits into a vector of four words: 8 halves or 4 floats. So threads that take
 * the tokens of a block read keys side by side, and threads that take dimensions read values so.
 */
import { BLOCK_SIZE } from "../core/engine/backend.ts";

/** Halves, or exact floats as the reference of tests. */
export type KvType = "f16" | "f32";

export interface KvLayout {
  readonly type: KvType;
  readonly kvHeads: number;
  readonly headSize: number;
}

/** Dimensions in a word. */
export const perWord = (type: KvType): number => type === "f16" ? 2 : 1;

/** Words of a record: one KV head's part of a block in one layer. */
export const recordWords = ({ type, headSize }: KvLayout): number =>
  2 * BLOCK_SIZE * headSize / perWord(type);

/** Bytes of a block in one layer. */
export const blockBytes = (layout: KvLayout): number => 4 * layout.kvHeads * recordWords(layout);

/** WGSL functions that find words in a cache. */
export function kvFunctions(layout: KvLayout): string {
  const keyWords = recordWords(layout) / 2;
  return `
fn record_at(block: u32, kv_head: u32) -> u32 {
  return (block * ${layout.kvHeads}u + kv_head) * ${2 * keyWords}u;
}

/** Word \`word\` of a token's key, in the order of its dimensions. */
fn key_at(record: u32, slot: u32, word: u32) -> u32 {
  return record + (word / 4u * ${BLOCK_SIZE}u + slot) * 4u + word % 4u;
}

fn value_at(record: u32, slot: u32, word: u32) -> u32 {
  return record + ${keyWords}u + slot * ${keyWords / BLOCK_SIZE}u + word;
}
`;
}
