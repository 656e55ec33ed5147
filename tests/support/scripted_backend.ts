/**
 * A Backend without a model, for tests of everything above it. Its logits are a pure function of the
 * token history, read back through the block table from a simulated KV cache. A wrong table, a stale
 * prefix, a lost swap or a write to a shared block therefore changes what it answers; and so does the
 * plan that a token attended by, where that was pruned.
 */
import {
  type AttentionPlan,
  type AttentionStats,
  type Backend,
  type BackendInfo,
  type BackendLimits,
  BLOCK_SIZE,
  type Draw,
  type DrawnToken,
  type FollowingInput,
  type ForwardResult,
  type KeyMoments,
  type KeySketch,
  type LogitStats,
  type OverriddenDraw,
  type Pruning,
  type SequenceInput,
  type Uncertainty,
} from "../../core/engine/backend.ts";
import { isScanned } from "../../core/engine/attention_cost.ts";
import { followingBatch, rowDraws } from "../../core/engine/backend_checks.ts";
import { uncertainty } from "../../core/entropic/entropy.ts";
import { BackendError } from "../../core/errors.ts";
import type { ModelConfig } from "../../core/model/config.ts";
import { drawByDefinition, drawFromRow } from "./draw_by_definition.ts";
import { checkScriptedBatch } from "./scripted_checks.ts";
import { scriptedStatistics } from "./scripted_statistics.ts";

export interface ScriptedOptions {
  readonly limits?: Partial<BackendLimits>;
  readonly vocabularySize?: number;
  readonly endTokens?: readonly number[];
  /** Whether a step may begin while the one before it is under way; steps draw for themselves then. */
  readonly overlaps?: boolean;
  /** What each step draws for itself, in place of what it should. */
  readonly drawn?: (logits: Float32Array, draw: Draw) => number;
  /** Called before each step computes, counted from 1; may wait, and may throw the failure. */
  readonly onForward?: (call: number, batch: readonly SequenceInput[]) => void | Promise<void>;
  /** A history that holds this token gives rows of NaN. */
  readonly poison?: number;
  /** Changes a row of logits before anything is made of it. */
  readonly shape?: (logits: Float32Array, history: readonly number[]) => void;
  /** Whether a sketch is set from the start; where left out, none can be. */
  readonly prunes?: boolean;
  /**
   * What pruned attention does to a row, after `shape`. With it, a pruned token has the KV that it has
   * densely, so that rows differ by what this does and nothing else.
   */
  readonly prune?: (logits: Float32Array, plan: AttentionPlan) => void;
}

/** Bytes of a simulated KV block: a token and a hash of 32 bits for each position. */
export const SCRIPTED_BLOCK_BYTES = BLOCK_SIZE * 8;

export class ScriptedBackend implements Backend {
  readonly config: ModelConfig;
  readonly limits: BackendLimits;
  readonly pruning?: Pruning;
  readonly follow?: NonNullable<Backend["follow"]>;
  /** The plan of each input so far, in order. */
  readonly plans: AttentionPlan[] = [];
  #prunes: boolean;
  readonly #options: ScriptedOptions;
  /** Shape [kvBlocks, BLOCK_SIZE, 2]: token + 1, and the hash of the history up to it. */
  readonly #kv: Uint32Array;
  #rows: Float32Array[] = [];
  /** How the latest step drew from each of its rows, and what. */
  #draws: readonly (Draw | undefined)[] = [];
  #drawn: readonly (DrawnToken | undefined)[] = [];
  /** Hash of all KV that the latest row was made from. */
  historyHash = 0;
  #disposed = false;
  forwards = 0;
  /** Steps of `forwards` that followed another. */
  follows = 0;
  /** The step that was begun last. */
  #latest: Promise<unknown> = Promise.resolve();
  #underWay = 0;
  /** Calls of `logits`, `readBlocks` and `writeBlocks`. */
  readonly calls = { logits: 0, reads: 0, writes: 0 };

  constructor(options: ScriptedOptions = {}) {
    const { vocabularySize = 64 } = options;
    this.#options = options;
    this.#prunes = options.prunes ?? false;
    if (options.overlaps === true) this.follow = (batch) => this.#follow(batch);
    if (options.prunes !== undefined) {
      this.pruning = {
        gather: (on) => Promise.resolve(on ? undefined : this.#moments()),
        useSketch: (sketch) => this.#useSketch(sketch),
      };
    }
    this.config = scriptedConfig(vocabularySize, options.endTokens ?? [0]);
    this.limits = {
      kvBlocks: 64,
      maxBatchTokens: 64,
      maxOutputRows: 32,
      contextLength: 4096,
      topK: Math.min(8, vocabularySize),
      ...options.limits,
    };
    this.#kv = new Uint32Array(this.limits.kvBlocks * BLOCK_SIZE * 2);
  }

  describe(): BackendInfo {
    return {
      kind: "scripted",
      variant: "test",
      threads: 1,
      weightBytes: 0,
      kvBytes: this.limits.kvBlocks * SCRIPTED_BLOCK_BYTES,
      prunes: this.#prunes,
    };
  }

  #moments(): KeyMoments {
    const { layers, kvHeads, headSize } = this.config;
    const heads = layers * kvHeads;
    const squares = () => new Float32Array(heads * headSize ** 2);
    return {
      tokens: 0,
      keyMean: new Float32Array(heads * headSize),
      keys: squares(),
      queries: squares(),
    };
  }

  // deno-lint-ignore require-await -- rejects where it cannot answer
  async #useSketch(sketch: KeySketch | undefined): Promise<void> {
    this.#checkAlive();
    this.#prunes = sketch !== undefined;
    this.#kv.fill(0);
  }

  forward(batch: readonly SequenceInput[]): Promise<ForwardResult> {
    return this.#inTurn(this.#latest.catch(() => {}), () => batch);
  }

  #follow(batch: readonly FollowingInput[]): Promise<ForwardResult> {
    this.follows++;
    return this.#inTurn(this.#latest, () => {
      const drawn = batch.map(({ row }) => this.#drawn[row]?.token ?? 0);
      const inputs = followingBatch(batch, this.#draws);
      return inputs.map((input, i) => ({ ...input, tokens: drawn.slice(i, i + 1) }));
    });
  }

  /** The token that a step draws from a row, where it draws. */
  #drawnFrom(logits: Float32Array, draw: Draw | undefined): DrawnToken | undefined {
    const { drawn, overlaps = false } = this.#options;
    if (draw === undefined || !(overlaps || drawn) || logits.some(Number.isNaN)) return undefined;
    const token = drawn?.(logits, draw) ?? drawByDefinition(logits, draw, draw.u);
    return { token, logit: logits[token] as number };
  }

  /** Runs a step once those before it are through. @param batchOf Called when its turn comes. */
  #inTurn(
    before: Promise<unknown>,
    batchOf: () => readonly SequenceInput[],
  ): Promise<ForwardResult> {
    this.#underWay++;
    const result = before.then(() => this.#step(batchOf())).finally(() => this.#underWay--);
    this.#latest = result;
    return result;
  }

  async #step(batch: readonly SequenceInput[]): Promise<ForwardResult> {
    this.#checkAlive();
    checkScriptedBatch(batch, this.limits, this.#prunes);
    const call = ++this.forwards;
    await this.#options.onForward?.(call, batch);
    this.#checkAlive();
    this.#rows = [];
    for (const input of batch) {
      this.plans.push(input.attention);
      this.#run(input);
    }
    this.#draws = batch.flatMap(rowDraws);
    this.#drawn = this.#rows.map((logits, row) => this.#drawnFrom(logits, this.#draws[row]));
    const rows = this.#rows.map((logits, row): LogitStats => {
      const drawn = this.#drawn[row];
      const stats = scriptedStatistics(logits, this.config.endTokens, this.limits.topK);
      return { ...stats, ...(drawn && { drawn }) };
    });
    return { rows, attention: batch.map(scriptedAttention) };
  }

  // deno-lint-ignore require-await -- rejects where it cannot answer
  async logits(row: number): Promise<Float32Array> {
    this.#checkAlive();
    if (this.#underWay > 0) throw new Error("Cannot give logits: another step is under way");
    this.calls.logits++;
    const logits = this.#rows[row];
    if (logits === undefined) throw new RangeError(`Cannot give logits: there is no row ${row}`);
    return logits.slice();
  }

  async logitsOf(row: number, ids: ArrayLike<number>): Promise<Float32Array> {
    const logits = await this.logits(row);
    this.calls.logits--; // a few of them only
    return Float32Array.from(ids, (id) => logits[id] as number);
  }

  async draw(row: number, draw: OverriddenDraw): Promise<number | undefined> {
    const logits = await this.logits(row);
    this.calls.logits--; // they stay here
    return drawFromRow(logits, draw);
  }

  async tempered(row: number, temperature: number): Promise<Uncertainty> {
    const logits = await this.logits(row);
    this.calls.logits--; // nobody asked for them
    return uncertainty(logits.map((logit) => logit / temperature));
  }

  // deno-lint-ignore require-await -- rejects where it cannot answer
  async copyBlocks(pairs: readonly (readonly [from: number, to: number])[]): Promise<void> {
    this.#checkAlive();
    for (const [from, to] of pairs) this.#block(to).set(this.#block(from));
  }

  // deno-lint-ignore require-await -- rejects where it cannot answer
  async readBlocks(blocks: readonly number[]): Promise<Uint8Array> {
    this.#checkAlive();
    this.calls.reads++;
    const content = new Uint32Array(blocks.length * BLOCK_SIZE * 2);
    blocks.forEach((block, i) => content.set(this.#block(block), i * BLOCK_SIZE * 2));
    return new Uint8Array(content.buffer);
  }

  // deno-lint-ignore require-await -- rejects where it cannot answer
  async writeBlocks(blocks: readonly number[], content: Uint8Array): Promise<void> {
    this.#checkAlive();
    this.calls.writes++;
    if (content.length !== blocks.length * SCRIPTED_BLOCK_BYTES) {
      throw new RangeError(`Cannot write ${content.length} bytes to ${blocks.length} blocks`);
    }
    const words = new Uint32Array(content.slice().buffer);
    blocks.forEach((block, i) => {
      this.#block(block).set(words.subarray(i * BLOCK_SIZE * 2, (i + 1) * BLOCK_SIZE * 2));
    });
  }

  // deno-lint-ignore require-await -- the contract is asynchronous
  async dispose(): Promise<void> {
    this.#disposed = true;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  #block(block: number): Uint32Array {
    return this.#kv.subarray(block * BLOCK_SIZE * 2, (block + 1) * BLOCK_SIZE * 2);
  }

  #slot({ blockTable }: SequenceInput, position: number): number {
    const block = blockTable[Math.floor(position / BLOCK_SIZE)] as number;
    return (block * BLOCK_SIZE + position % BLOCK_SIZE) * 2;
  }

  #run(input: SequenceInput): void {
    const { tokens, position, output } = input;
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i] as number, at = position + i;
      const before = at === 0 ? 0 : this.#kv[this.#slot(input, at - 1) + 1] as number;
      const slot = this.#slot(input, at);
      this.#kv[slot] = token + 1;
      const pruned = isPruned(input.attention, at), { prune } = this.#options;
      const salt = pruned && prune === undefined ? hashOf(input.attention) : 0;
      this.#kv[slot + 1] = mix(mix(before, token + 1), at) ^ salt;
      if (output === "all" || (output === "last" && i === tokens.length - 1)) {
        const row = this.#row(input, at);
        if (pruned) prune?.(row, input.attention);
        this.#rows.push(row);
      }
    }
  }

  /** Logits after position `last`, from everything that the table says came before. */
  #row(input: SequenceInput, last: number): Float32Array {
    let hash = 0, poisoned = false;
    const { poison, shape } = this.#options;
    for (let at = 0; at <= last; at++) {
      const slot = this.#slot(input, at);
      const stored = this.#kv[slot] as number;
      if (stored === 0) {
        throw new Error(`Cannot attend to position ${at}: its KV was never written`);
      }
      if (stored - 1 === poison) poisoned = true;
      hash = mix(mix(hash, stored), this.#kv[slot + 1] as number);
    }
    this.historyHash = hash;
    const logits = new Float32Array(this.config.vocabularySize);
    const spread = 1 + hash % 8;
    for (let id = 0; id < logits.length; id++) {
      logits[id] = poisoned ? NaN : spread * mix(hash, id + 1) / 2 ** 32;
    }
    if (shape !== undefined) {
      const history = Array.from(
        { length: last + 1 },
        (_, at) => (this.#kv[this.#slot(input, at)] as number) - 1,
      );
      shape(logits, history);
    }
    return logits;
  }

  #checkAlive(): void {
    if (this.#disposed) throw new BackendError("Cannot compute: disposed", { fatal: true });
  }
}

/** Whether a token may attend to less than all blocks before it. */
const isPruned = (plan: AttentionPlan, position: number): boolean =>
  isScanned(plan, Math.ceil((position + 1) / BLOCK_SIZE));

function hashOf(plan: AttentionPlan): number {
  return [...JSON.stringify(plan)].reduce((hash, char) => mix(hash, char.charCodeAt(0)), 1);
}

/** Blocks of a pruned token: a third, or `minBlocks`; an eighth of the rest's bytes for a sketch. */
function scriptedAttention({ attention, position, tokens }: SequenceInput): AttentionStats {
  let read = 0, total = 0, scanned = 0;
  for (let at = position; at < position + tokens.length; at++) {
    const blocks = Math.ceil((at + 1) / BLOCK_SIZE);
    const pruned = isPruned(attention, at);
    total += blocks;
    if (attention.kind === "dense" || !pruned) read += blocks;
    else read += Math.max(attention.minBlocks, Math.ceil(blocks / 3));
    if (pruned) scanned += blocks;
  }
  return {
    blocksRead: read,
    blocksTotal: total,
    bytesRead: (read + scanned / 8) * SCRIPTED_BLOCK_BYTES,
    bytesTotal: total * SCRIPTED_BLOCK_BYTES,
    macs: (read + scanned / 4) * BLOCK_SIZE,
    macsTotal: total * BLOCK_SIZE,
    massDropped: attention.kind === "mass" && scanned > 0 ? (1 - attention.mass) / 2 : 0,
  };
}

function scriptedConfig(vocabularySize: number, endTokens: readonly number[]): ModelConfig {
  return {
    architecture: "llama",
    name: "scripted",
    layers: 1,
    hiddenSize: 8,
    feedForwardSize: 8,
    heads: 1,
    kvHeads: 1,
    headSize: 8,
    vocabularySize,
    contextLength: 4096,
    rmsEpsilon: 1e-5,
    rope: { base: 10000, dimensions: 8, scaling: { type: "none" } },
    tiedOutput: true,
    endTokens,
  };
}

/** One round of a 32-bit integer hash. */
function mix(hash: number, value: number): number {
  let x = Math.imul(hash ^ value, 0x9e3779b1);
  x = Math.imul(x ^ (x >>> 15), 0x85ebca77);
  return (x ^ (x >>> 13)) >>> 0;
}
