/* tslint:disable */
/* eslint-disable */

export class Core {
    free(): void;
    [Symbol.dispose](): void;
    add_end_token(id: number): void;
    /**
     * Of the latest step, [tokens][KV heads][2] f32: blocks read, and the share of the attention left
     * out, summed over layers.
     */
    attention_pointer(): number;
    /**
     * False when memory is exhausted. Slots are those of `weights::Slot`, formats GGUF's ids.
     */
    begin_tensor(slot: number, layer: number, format: number, rows: number, columns: number): boolean;
    copy_block(from: number, to: number): void;
    /**
     * Draws a token from an output row in which the staging area's `overrides` replace logits: so many
     * ids, then as many logits. `u32::MAX` where no token is possible.
     */
    draw(row: number, overrides: number, top_k: number, top_p: number, min_p: number, temperature: number, u: number): number;
    /**
     * Reserves cache and scratch; false when memory is exhausted. `kv_type`: 0 q8, 1 f32. `double`:
     * activations of 16 bits instead of 8.
     */
    finish(double: boolean, kv_type: number, kv_blocks: number, tokens: number, output_rows: number, top_k: number, threads: number): boolean;
    forward(sequences: number): void;
    /**
     * Starts gathering moments afresh, at so many times the tokens' positions; with 0 ends it and
     * drops them.
     */
    gather(stretch: number): void;
    /**
     * Where the host writes a batch of this many words.
     */
    input(words: number): number;
    /**
     * Bytes of a KV block over all layers.
     */
    kv_block_bytes(kv_type: number): number;
    /**
     * Repacks `bytes` bytes of the staging area, whole rows from row `first` on. False where a scale or
     * minimum cannot be kept.
     */
    load_rows(first: number, bytes: number): boolean;
    /**
     * [vocabulary] f32
     */
    logits_pointer(row: number): number;
    /**
     * `Moments::sums`, while gathering.
     */
    moments_pointer(): number;
    /**
     * Tokens that were gathered.
     */
    moments_tokens(): number;
    constructor(layers: number, hidden: number, feed_forward: number, heads: number, kv_heads: number, head_size: number, vocabulary: number, epsilon: number);
    /**
     * Gathers a block's content in the staging area: records, then codes.
     */
    read_block(block: number): number;
    /**
     * `kind`: 0 none, 1 linear, 2 YaRN.
     */
    set_rope(base: number, dimensions: number, kind: number, factor: number, original_context: number, attention: number, beta_fast: number, beta_slow: number): void;
    /**
     * Bytes of a block's sketch over all layers and heads; 0 without one.
     */
    sketch_block_bytes(): number;
    /**
     * Where the host puts the file's bytes before `load_rows`.
     */
    staging(bytes: number): number;
    /**
     * [rows][5] f64: max, log Z, entropy, varentropy, end probability.
     */
    stats_pointer(): number;
    /**
     * The team that workers serve; 0 where the core works alone.
     */
    team(): number;
    /**
     * Entropy and varentropy of an output row at a temperature above 0.
     */
    tempered(row: number, temperature: number): number;
    /**
     * [rows][top k] u32
     */
    top_ids_pointer(): number;
    /**
     * [rows][top k] f32
     */
    top_logits_pointer(): number;
    /**
     * Takes the maps of a `KeySketch` from the staging area: key map, key offset, query map. With 0
     * dimensions it drops the sketch. False when memory is exhausted.
     */
    use_sketch(dimensions: number): boolean;
    weight_bytes(): number;
    /**
     * Puts the staging area's content back in a block.
     */
    write_block(block: number): void;
}

/**
 * Tells the leader that a worker trapped.
 *
 * # Safety
 * As for `serve_team`.
 */
export function fail_team(team: number): void;

/**
 * Attention of three query heads over one KV head. `q` is [3][size] and is changed, `keys` and
 * `values` are [tokens][size], keys are changed too; `out` is [3][size].
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 */
export function probe_attention(reference: boolean, size: number, tokens: number, q: number, keys: number, values: number, out: number): void;

/**
 * Chooses among `count` blocks by their shares; `chosen` gets the indices. Returns how many they are.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 */
export function probe_choose(kind: number, share: number, least: number, count: number, shares: number, chosen: number): number;

/**
 * The values of each row, after repacking.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 */
export function probe_dequantize(format: number, rows: number, columns: number, weights: number, out: number): void;

/**
 * The token drawn from a row; `u32::MAX` where none is possible.
 *
 * # Safety
 * The pointer is of `probe_reserve` and large enough.
 */
export function probe_draw(logits: number, count: number, top_k: number, top_p: number, min_p: number, temperature: number, u: number): number;

/**
 * exp of `count` numbers in place; a multiple of 4.
 *
 * # Safety
 * The pointer is of `probe_reserve` and large enough.
 */
export function probe_exp(x: number, count: number): void;

/**
 * `out[token][row] = weights . x[token]`; rows of `out` are as many as fill whole bands. `double`: with
 * activations of 16 bits instead of 8.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 */
export function probe_matmul(reference: boolean, double: boolean, format: number, rows: number, columns: number, weights: number, tokens: number, x: number, out: number): void;

export function probe_reserve(bytes: number): number;

/**
 * Shares of the attention of three query heads that the scan finds in each block. `maps` are those of
 * a `KeySketch` of one layer and KV head, `keys` are [tokens][size], `q` [3][size]; `out` gets the sum
 * over the heads of each block.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 */
export function probe_shares(size: number, dimensions: number, maps: number, tokens: number, keys: number, q: number, out: number): void;

/**
 * Statistics of a row; `out` gets the five numbers of `Stats`.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 */
export function probe_statistics(logits: number, count: number, end_token: number, top_k: number, ids: number, best: number, out: number): void;

/**
 * Lends the calling thread to a team until the team is stopped.
 *
 * # Safety
 * `team` is of `Core::team`, in the same memory.
 */
export function serve_team(team: number): void;

/**
 * Sends the workers home.
 *
 * # Safety
 * As for `serve_team`.
 */
export function stop_team(team: number): void;

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly __wbg_core_free: (a: number, b: number) => void;
    readonly core_add_end_token: (a: number, b: number) => void;
    readonly core_attention_pointer: (a: number) => number;
    readonly core_begin_tensor: (a: number, b: number, c: number, d: number, e: number, f: number) => number;
    readonly core_copy_block: (a: number, b: number, c: number) => void;
    readonly core_draw: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number) => number;
    readonly core_finish: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number) => number;
    readonly core_forward: (a: number, b: number) => void;
    readonly core_gather: (a: number, b: number) => void;
    readonly core_input: (a: number, b: number) => number;
    readonly core_kv_block_bytes: (a: number, b: number) => number;
    readonly core_load_rows: (a: number, b: number, c: number) => number;
    readonly core_logits_pointer: (a: number, b: number) => number;
    readonly core_moments_pointer: (a: number) => number;
    readonly core_moments_tokens: (a: number) => number;
    readonly core_new: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number) => number;
    readonly core_read_block: (a: number, b: number) => number;
    readonly core_set_rope: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number) => void;
    readonly core_sketch_block_bytes: (a: number) => number;
    readonly core_staging: (a: number, b: number) => number;
    readonly core_stats_pointer: (a: number) => number;
    readonly core_team: (a: number) => number;
    readonly core_tempered: (a: number, b: number, c: number) => number;
    readonly core_top_ids_pointer: (a: number) => number;
    readonly core_top_logits_pointer: (a: number) => number;
    readonly core_use_sketch: (a: number, b: number) => number;
    readonly core_weight_bytes: (a: number) => number;
    readonly core_write_block: (a: number, b: number) => void;
    readonly fail_team: (a: number) => void;
    readonly probe_attention: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => void;
    readonly probe_choose: (a: number, b: number, c: number, d: number, e: number, f: number) => number;
    readonly probe_dequantize: (a: number, b: number, c: number, d: number, e: number) => void;
    readonly probe_draw: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => number;
    readonly probe_exp: (a: number, b: number) => void;
    readonly probe_matmul: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number) => void;
    readonly probe_reserve: (a: number) => number;
    readonly probe_shares: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => void;
    readonly probe_statistics: (a: number, b: number, c: number, d: number, e: number, f: number, g: number) => void;
    readonly serve_team: (a: number) => void;
    readonly stop_team: (a: number) => void;
    readonly memory: WebAssembly.Memory;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __wbindgen_thread_destroy: (a?: number, b?: number, c?: number) => void;
    readonly __wbindgen_start: (a: number) => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput, memory?: WebAssembly.Memory, thread_stack_size?: number }} module - Passing `SyncInitInput` directly is deprecated.
 * @param {WebAssembly.Memory} memory - Deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput, memory?: WebAssembly.Memory, thread_stack_size?: number } | SyncInitInput, memory?: WebAssembly.Memory): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput>, memory?: WebAssembly.Memory, thread_stack_size?: number }} module_or_path - Passing `InitInput` directly is deprecated.
 * @param {WebAssembly.Memory} memory - Deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path?: { module_or_path: InitInput | Promise<InitInput>, memory?: WebAssembly.Memory, thread_stack_size?: number } | InitInput | Promise<InitInput>, memory?: WebAssembly.Memory): Promise<InitOutput>;
