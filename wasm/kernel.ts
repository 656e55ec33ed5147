/**
 * The core of one WASM instance, with typed views of its memory. Views are made anew when the memory
 * has grown; pointers beyond 2 GiB come back negative and are made unsigned.
 */
import type { ModelConfig } from "../core/model/config.ts";
import type {
  AttentionPlan,
  LogitStats,
  OverriddenDraw,
  SequenceInput,
  Uncertainty,
} from "../core/engine/backend.ts";
import type { Arithmetic } from "../core/engine/arithmetic.ts";
import type { AttentionCount } from "../core/engine/attention_cost.ts";
import type { KernelExports, ThreadExports } from "./loader.ts";

/** How keys and values are stored: integers with scales, or exact floats for reference. */
export type KvType = "q8" | "f32";

export interface KernelSizes {
  readonly arithmetic: Arithmetic;
  readonly kvType: KvType;
  readonly kvBlocks: number;
  readonly maxBatchTokens: number;
  readonly maxOutputRows: number;
  readonly topK: number;
  readonly threads: number;
}

const KV_TYPES = { q8: 0, f32: 1 } as const;
const OUTPUT_MODES = { none: 0, last: 1, all: 2 } as const;
const PLAN_KINDS = { dense: 0, mass: 1, threshold: 2 } as const;
/** Words before the tokens of a sequence in the core's input. */
const HEADER = 7;
/** What the core gives where there is no token. */
const NO_TOKEN = 0xffffffff;
/** Numbers of `Stats` in the core. */
const STATS = 5;

export class Kernel {
  readonly #exports: KernelExports;
  readonly #core: number;
  readonly #vocabulary: number;
  readonly #kvHeads: number;
  #topK = 0;
  #buffer: ArrayBufferLike;
  #bytes: Uint8Array<ArrayBufferLike>;
  #words: Uint32Array<ArrayBufferLike>;
  #floats: Float32Array<ArrayBufferLike>;
  #doubles: Float64Array<ArrayBufferLike>;

  constructor(exports: KernelExports, config: ModelConfig) {
    this.#exports = exports;
    this.#vocabulary = config.vocabularySize;
    this.#kvHeads = config.kvHeads;
    this.#core = exports.core_new(
      config.layers,
      config.hiddenSize,
      config.feedForwardSize,
      config.heads,
      config.kvHeads,
      config.headSize,
      config.vocabularySize,
      config.rmsEpsilon,
    );
    this.#buffer = exports.memory.buffer;
    this.#bytes = new Uint8Array(this.#buffer);
    this.#words = new Uint32Array(this.#buffer);
    this.#floats = new Float32Array(this.#buffer);
    this.#doubles = new Float64Array(this.#buffer);
    this.#setRope(config);
    for (const id of config.endTokens) exports.core_add_end_token(this.#core, id);
  }

  #setRope({ rope: { base, dimensions, scaling } }: ModelConfig): void {
    const kind = { none: 0, linear: 1, yarn: 2 }[scaling.type];
    const factor = scaling.type === "none" ? 1 : scaling.factor;
    const yarn = scaling.type === "yarn"
      ? scaling
      : { originalContext: 1, attentionFactor: 1, betaFast: 1, betaSlow: 1 };
    this.#exports.core_set_rope(
      this.#core,
      base,
      dimensions,
      kind,
      factor,
      yarn.originalContext,
      yarn.attentionFactor,
      yarn.betaFast,
      yarn.betaSlow,
    );
  }

  /** Makes the views valid after any call that may have grown the memory. */
  #refresh(): void {
    const { buffer } = this.#exports.memory;
    if (buffer === this.#buffer && buffer.byteLength === this.#bytes.length) return;
    this.#buffer = buffer;
    this.#bytes = new Uint8Array(buffer);
    this.#words = new Uint32Array(buffer);
    this.#floats = new Float32Array(buffer);
    this.#doubles = new Float64Array(buffer);
  }

  /** False when the memory is exhausted. */
  beginTensor(slot: number, layer: number, format: number, rows: number, columns: number): boolean {
    return this.#exports.core_begin_tensor(this.#core, slot, layer, format, rows, columns) !== 0;
  }

  /**
   * Repacks whole rows, as they lie in the file, from row `first` on.
   *
   * @returns Whether all scales and minima are finite, and those kept as halves within their range.
   */
  loadRows(first: number, rows: Uint8Array): boolean {
    const pointer = this.#exports.core_staging(this.#core, rows.length) >>> 0;
    this.#refresh();
    this.#bytes.set(rows, pointer);
    return this.#exports.core_load_rows(this.#core, first, rows.length) !== 0;
  }

  /** Reserves cache and scratch; false when the memory is exhausted. */
  finish(sizes: KernelSizes): boolean {
    this.#topK = sizes.topK;
    return this.#exports.core_finish(
      this.#core,
      Number(sizes.arithmetic === "f32"),
      KV_TYPES[sizes.kvType],
      sizes.kvBlocks,
      sizes.maxBatchTokens,
      sizes.maxOutputRows,
      sizes.topK,
      sizes.threads,
    ) !== 0;
  }

  /** Pointer to the team that threads serve; only with shared memory. */
  get team(): number {
    return (this.#exports as unknown as ThreadExports).core_team(this.#core) >>> 0;
  }

  /** Sends a team's threads home; also after a trap. */
  stopTeam(team: number): void {
    (this.#exports as unknown as ThreadExports).stop_team(team);
  }

  forward(batch: readonly SequenceInput[]): void {
    let words = 0;
    for (const { tokens, blockTable } of batch) words += HEADER + tokens.length + blockTable.length;
    const pointer = this.#exports.core_input(this.#core, words) >>> 0;
    this.#refresh();
    let at = pointer / 4;
    for (const { tokens, position, output, blockTable, attention } of batch) {
      this.#words[at] = tokens.length;
      this.#words[at + 1] = position;
      this.#words[at + 2] = OUTPUT_MODES[output];
      this.#words[at + 3] = blockTable.length;
      this.#words[at + 4] = PLAN_KINDS[attention.kind];
      this.#floats[at + 5] = shareOf(attention);
      this.#words[at + 6] = attention.kind === "dense" ? 0 : attention.minBlocks;
      this.#words.set(tokens, at + HEADER);
      this.#words.set(blockTable, at + HEADER + tokens.length);
      at += HEADER + tokens.length + blockTable.length;
    }
    this.#exports.core_forward(this.#core, batch.length);
    this.#refresh();
  }

  /** Statistics of an output row of the latest `forward`. */
  stats(row: number): LogitStats {
    const at = (this.#exports.core_stats_pointer(this.#core) >>> 0) / 8 + row * STATS;
    const ids = (this.#exports.core_top_ids_pointer(this.#core) >>> 0) / 4 + row * this.#topK;
    const best = (this.#exports.core_top_logits_pointer(this.#core) >>> 0) / 4 + row * this.#topK;
    return {
      max: this.#doubles[at] ?? NaN,
      logZ: this.#doubles[at + 1] ?? NaN,
      entropy: this.#doubles[at + 2] ?? NaN,
      varentropy: this.#doubles[at + 3] ?? NaN,
      endProbability: this.#doubles[at + 4] ?? NaN,
      topIds: new Uint32Array(this.#words.subarray(ids, ids + this.#topK)),
      topLogits: new Float32Array(this.#floats.subarray(best, best + this.#topK)),
    };
  }

  /** Entropy and varentropy of an output row at a temperature. */
  tempered(row: number, temperature: number): Uncertainty {
    const at = (this.#exports.core_tempered(this.#core, row, temperature) >>> 0) / 8;
    return { entropy: this.#doubles[at] ?? NaN, varentropy: this.#doubles[at + 1] ?? NaN };
  }

  /** A view of an output row's logits, until the next call. */
  logits(row: number): Float32Array<ArrayBufferLike> {
    const at = (this.#exports.core_logits_pointer(this.#core, row) >>> 0) / 4;
    return this.#floats.subarray(at, at + this.#vocabulary);
  }

  /** A token drawn from an output row; undefined where none is possible. */
  draw(row: number, draw: OverriddenDraw): number | undefined {
    const { overrides, topK, topP, minP, temperature, u } = draw;
    const { ids, logits } = overrides, count = ids.length;
    const at = (this.#exports.core_staging(this.#core, 8 * count) >>> 0) / 4;
    this.#refresh();
    this.#words.set(ids, at);
    this.#floats.set(logits, at + count);
    const args = [topK, topP, minP, temperature, u] as const;
    const token = this.#exports.core_draw(this.#core, row, count, ...args) >>> 0;
    return token === NO_TOKEN ? undefined : token;
  }

  /** What the attention of tokens `first` to `end` of the latest `forward` read. */
  attention(first: number, end: number): AttentionCount {
    const at = (this.#exports.core_attention_pointer(this.#core) >>> 0) / 4;
    const width = 2 * this.#kvHeads;
    let blocks = 0, dropped = 0;
    for (let i = at + first * width; i < at + end * width; i += 2) {
      blocks += this.#floats[i] ?? NaN;
      dropped += this.#floats[i + 1] ?? NaN;
    }
    return { blocks, dropped };
  }

  /** Starts gathering moments afresh, at so many times the positions; 0 ends it and drops them. */
  gather(stretch: number): void {
    this.#exports.core_gather(this.#core, stretch);
    this.#refresh();
  }

  /** What was gathered since `gather`: a copy of the core's sums, and over how many tokens. */
  moments(length: number): { readonly tokens: number; readonly sums: Float32Array } {
    const tokens = this.#exports.core_moments_tokens(this.#core) >>> 0;
    const at = (this.#exports.core_moments_pointer(this.#core) >>> 0) / 4;
    return { tokens, sums: new Float32Array(this.#floats.subarray(at, at + length)) };
  }

  /** Takes a sketch's maps, or drops it with 0 dimensions; false when the memory is exhausted. */
  useSketch(dimensions: number, maps: Float32Array): boolean {
    const pointer = this.#exports.core_staging(this.#core, maps.byteLength) >>> 0;
    this.#refresh();
    this.#floats.set(maps, pointer / 4);
    const done = this.#exports.core_use_sketch(this.#core, dimensions) !== 0;
    this.#refresh();
    return done;
  }

  /** Bytes of a block's codes over all layers and KV heads; 0 without a sketch. */
  get sketchBlockBytes(): number {
    return this.#exports.core_sketch_block_bytes(this.#core) >>> 0;
  }

  copyBlock(from: number, to: number): void {
    this.#exports.core_copy_block(this.#core, from, to);
  }

  /** Copies a block's content, of all layers, into `target`. */
  readBlock(block: number, target: Uint8Array): void {
    const pointer = this.#exports.core_read_block(this.#core, block) >>> 0;
    this.#refresh();
    target.set(this.#bytes.subarray(pointer, pointer + target.length));
  }

  writeBlock(block: number, content: Uint8Array): void {
    const pointer = this.#exports.core_staging(this.#core, content.length) >>> 0;
    this.#refresh();
    this.#bytes.set(content, pointer);
    this.#exports.core_write_block(this.#core, block);
  }

  /** Bytes of a KV block over all layers. */
  kvBlockBytes(kvType: KvType): number {
    return this.#exports.core_kv_block_bytes(this.#core, KV_TYPES[kvType]) >>> 0;
  }

  get weightBytes(): number {
    return this.#exports.core_weight_bytes(this.#core) >>> 0;
  }
}

/** The number that an attention plan is about. */
function shareOf(plan: AttentionPlan): number {
  if (plan.kind === "dense") return 1;
  return plan.kind === "mass" ? plan.mass : plan.threshold;
}
