/* tslint:disable */
/* eslint-disable */

export class Encoder {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Token ids of `text`, without BOS or EOS. Control tokens are seen only with `parse_special`.
     */
    encode(text: string, parse_special: boolean): Uint32Array;
    /**
     * `definition` is the JSON of `Definition`. Vocabulary and merges come packed: the UTF-8 of
     * all strings in one array, and where each ends. A token's id is its index; an empty string
     * is an id that no text becomes. `scores` is empty or has one entry a token.
     */
    constructor(definition: string, token_bytes: Uint8Array | number[], token_ends: Uint32Array | number[], scores: Float32Array | number[], merge_bytes: Uint8Array | number[], merge_ends: Uint32Array | number[]);
}

export type InitInput = RequestInfo | URL | Response | BufferSource | WebAssembly.Module;

export interface InitOutput {
    readonly memory: WebAssembly.Memory;
    readonly __wbg_encoder_free: (a: number, b: number) => void;
    readonly encoder_encode: (a: number, b: number, c: number, d: number) => [number, number, number, number];
    readonly encoder_new: (a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number, i: number, j: number, k: number, l: number) => [number, number, number];
    readonly __wbindgen_exn_store: (a: number) => void;
    readonly __externref_table_alloc: () => number;
    readonly __wbindgen_externrefs: WebAssembly.Table;
    readonly __wbindgen_malloc: (a: number, b: number) => number;
    readonly __wbindgen_realloc: (a: number, b: number, c: number, d: number) => number;
    readonly __wbindgen_free: (a: number, b: number, c: number) => void;
    readonly __externref_table_dealloc: (a: number) => void;
    readonly __wbindgen_start: () => void;
}

export type SyncInitInput = BufferSource | WebAssembly.Module;

/**
 * Instantiates the given `module`, which can either be bytes or
 * a precompiled `WebAssembly.Module`.
 *
 * @param {{ module: SyncInitInput }} module - Passing `SyncInitInput` directly is deprecated.
 *
 * @returns {InitOutput}
 */
export function initSync(module: { module: SyncInitInput } | SyncInitInput): InitOutput;

/**
 * If `module_or_path` is {RequestInfo} or {URL}, makes a request and
 * for everything else, calls `WebAssembly.instantiate` directly.
 *
 * @param {{ module_or_path: InitInput | Promise<InitInput> }} module_or_path - Passing `InitInput` directly is deprecated.
 *
 * @returns {Promise<InitOutput>}
 */
export default function __wbg_init (module_or_path?: { module_or_path: InitInput | Promise<InitInput> } | InitInput | Promise<InitInput>): Promise<InitOutput>;
