/* @ts-self-types="./kernels_threads.d.ts" */

export class Core {
    __destroy_into_raw() {
        const ptr = this.__wbg_ptr;
        this.__wbg_ptr = 0;
        CoreFinalization.unregister(this);
        return ptr;
    }
    free() {
        const ptr = this.__destroy_into_raw();
        wasm.__wbg_core_free(ptr, 0);
    }
    /**
     * @param {number} id
     */
    add_end_token(id) {
        wasm.core_add_end_token(this.__wbg_ptr, id);
    }
    /**
     * Of the latest step, [tokens][KV heads][2] f32: blocks read, and the share of the attention left
     * out, summed over layers.
     * @returns {number}
     */
    attention_pointer() {
        const ret = wasm.core_attention_pointer(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * False when memory is exhausted. Slots are those of `weights::Slot`, formats GGUF's ids.
     * @param {number} slot
     * @param {number} layer
     * @param {number} format
     * @param {number} rows
     * @param {number} columns
     * @returns {boolean}
     */
    begin_tensor(slot, layer, format, rows, columns) {
        const ret = wasm.core_begin_tensor(this.__wbg_ptr, slot, layer, format, rows, columns);
        return ret !== 0;
    }
    /**
     * @param {number} from
     * @param {number} to
     */
    copy_block(from, to) {
        wasm.core_copy_block(this.__wbg_ptr, from, to);
    }
    /**
     * Draws a token from an output row in which the staging area's `overrides` replace logits: so many
     * ids, then as many logits. `u32::MAX` where no token is possible.
     * @param {number} row
     * @param {number} overrides
     * @param {number} top_k
     * @param {number} top_p
     * @param {number} min_p
     * @param {number} temperature
     * @param {number} u
     * @returns {number}
     */
    draw(row, overrides, top_k, top_p, min_p, temperature, u) {
        const ret = wasm.core_draw(this.__wbg_ptr, row, overrides, top_k, top_p, min_p, temperature, u);
        return ret >>> 0;
    }
    /**
     * Reserves cache and scratch; false when memory is exhausted. `kv_type`: 0 q8, 1 f32. `double`:
     * activations of 16 bits instead of 8.
     * @param {boolean} double
     * @param {number} kv_type
     * @param {number} kv_blocks
     * @param {number} tokens
     * @param {number} output_rows
     * @param {number} top_k
     * @param {number} threads
     * @returns {boolean}
     */
    finish(double, kv_type, kv_blocks, tokens, output_rows, top_k, threads) {
        const ret = wasm.core_finish(this.__wbg_ptr, double, kv_type, kv_blocks, tokens, output_rows, top_k, threads);
        return ret !== 0;
    }
    /**
     * @param {number} sequences
     */
    forward(sequences) {
        wasm.core_forward(this.__wbg_ptr, sequences);
    }
    /**
     * Starts gathering moments afresh, at so many times the tokens' positions; with 0 ends it and
     * drops them.
     * @param {number} stretch
     */
    gather(stretch) {
        wasm.core_gather(this.__wbg_ptr, stretch);
    }
    /**
     * Where the host writes a batch of this many words.
     * @param {number} words
     * @returns {number}
     */
    input(words) {
        const ret = wasm.core_input(this.__wbg_ptr, words);
        return ret >>> 0;
    }
    /**
     * Bytes of a KV block over all layers.
     * @param {number} kv_type
     * @returns {number}
     */
    kv_block_bytes(kv_type) {
        const ret = wasm.core_kv_block_bytes(this.__wbg_ptr, kv_type);
        return ret >>> 0;
    }
    /**
     * Repacks `bytes` bytes of the staging area, whole rows from row `first` on. False where a scale or
     * minimum cannot be kept.
     * @param {number} first
     * @param {number} bytes
     * @returns {boolean}
     */
    load_rows(first, bytes) {
        const ret = wasm.core_load_rows(this.__wbg_ptr, first, bytes);
        return ret !== 0;
    }
    /**
     * [vocabulary] f32
     * @param {number} row
     * @returns {number}
     */
    logits_pointer(row) {
        const ret = wasm.core_logits_pointer(this.__wbg_ptr, row);
        return ret >>> 0;
    }
    /**
     * `Moments::sums`, while gathering.
     * @returns {number}
     */
    moments_pointer() {
        const ret = wasm.core_moments_pointer(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * Tokens that were gathered.
     * @returns {number}
     */
    moments_tokens() {
        const ret = wasm.core_moments_tokens(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * @param {number} layers
     * @param {number} hidden
     * @param {number} feed_forward
     * @param {number} heads
     * @param {number} kv_heads
     * @param {number} head_size
     * @param {number} vocabulary
     * @param {number} epsilon
     */
    constructor(layers, hidden, feed_forward, heads, kv_heads, head_size, vocabulary, epsilon) {
        const ret = wasm.core_new(layers, hidden, feed_forward, heads, kv_heads, head_size, vocabulary, epsilon);
        this.__wbg_ptr = ret;
        CoreFinalization.register(this, this.__wbg_ptr, this);
        return this;
    }
    /**
     * Gathers a block's content in the staging area: records, then codes.
     * @param {number} block
     * @returns {number}
     */
    read_block(block) {
        const ret = wasm.core_read_block(this.__wbg_ptr, block);
        return ret >>> 0;
    }
    /**
     * `kind`: 0 none, 1 linear, 2 YaRN.
     * @param {number} base
     * @param {number} dimensions
     * @param {number} kind
     * @param {number} factor
     * @param {number} original_context
     * @param {number} attention
     * @param {number} beta_fast
     * @param {number} beta_slow
     */
    set_rope(base, dimensions, kind, factor, original_context, attention, beta_fast, beta_slow) {
        wasm.core_set_rope(this.__wbg_ptr, base, dimensions, kind, factor, original_context, attention, beta_fast, beta_slow);
    }
    /**
     * Bytes of a block's sketch over all layers and heads; 0 without one.
     * @returns {number}
     */
    sketch_block_bytes() {
        const ret = wasm.core_sketch_block_bytes(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * Where the host puts the file's bytes before `load_rows`.
     * @param {number} bytes
     * @returns {number}
     */
    staging(bytes) {
        const ret = wasm.core_staging(this.__wbg_ptr, bytes);
        return ret >>> 0;
    }
    /**
     * [rows][5] f64: max, log Z, entropy, varentropy, end probability.
     * @returns {number}
     */
    stats_pointer() {
        const ret = wasm.core_stats_pointer(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * The team that workers serve; 0 where the core works alone.
     * @returns {number}
     */
    team() {
        const ret = wasm.core_team(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * Entropy and varentropy of an output row at a temperature above 0.
     * @param {number} row
     * @param {number} temperature
     * @returns {number}
     */
    tempered(row, temperature) {
        const ret = wasm.core_tempered(this.__wbg_ptr, row, temperature);
        return ret >>> 0;
    }
    /**
     * [rows][top k] u32
     * @returns {number}
     */
    top_ids_pointer() {
        const ret = wasm.core_top_ids_pointer(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * [rows][top k] f32
     * @returns {number}
     */
    top_logits_pointer() {
        const ret = wasm.core_top_logits_pointer(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * Takes the maps of a `KeySketch` from the staging area: key map, key offset, query map. With 0
     * dimensions it drops the sketch. False when memory is exhausted.
     * @param {number} dimensions
     * @returns {boolean}
     */
    use_sketch(dimensions) {
        const ret = wasm.core_use_sketch(this.__wbg_ptr, dimensions);
        return ret !== 0;
    }
    /**
     * @returns {number}
     */
    weight_bytes() {
        const ret = wasm.core_weight_bytes(this.__wbg_ptr);
        return ret >>> 0;
    }
    /**
     * Puts the staging area's content back in a block.
     * @param {number} block
     */
    write_block(block) {
        wasm.core_write_block(this.__wbg_ptr, block);
    }
}
if (Symbol.dispose) Core.prototype[Symbol.dispose] = Core.prototype.free;

/**
 * Tells the leader that a worker trapped.
 *
 * # Safety
 * As for `serve_team`.
 * @param {number} team
 */
export function fail_team(team) {
    wasm.fail_team(team);
}

/**
 * Attention of three query heads over one KV head. `q` is [3][size] and is changed, `keys` and
 * `values` are [tokens][size], keys are changed too; `out` is [3][size].
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 * @param {boolean} reference
 * @param {number} size
 * @param {number} tokens
 * @param {number} q
 * @param {number} keys
 * @param {number} values
 * @param {number} out
 */
export function probe_attention(reference, size, tokens, q, keys, values, out) {
    wasm.probe_attention(reference, size, tokens, q, keys, values, out);
}

/**
 * Chooses among `count` blocks by their shares; `chosen` gets the indices. Returns how many they are.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 * @param {number} kind
 * @param {number} share
 * @param {number} least
 * @param {number} count
 * @param {number} shares
 * @param {number} chosen
 * @returns {number}
 */
export function probe_choose(kind, share, least, count, shares, chosen) {
    const ret = wasm.probe_choose(kind, share, least, count, shares, chosen);
    return ret >>> 0;
}

/**
 * The values of each row, after repacking.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 * @param {number} format
 * @param {number} rows
 * @param {number} columns
 * @param {number} weights
 * @param {number} out
 */
export function probe_dequantize(format, rows, columns, weights, out) {
    wasm.probe_dequantize(format, rows, columns, weights, out);
}

/**
 * The token drawn from a row; `u32::MAX` where none is possible.
 *
 * # Safety
 * The pointer is of `probe_reserve` and large enough.
 * @param {number} logits
 * @param {number} count
 * @param {number} top_k
 * @param {number} top_p
 * @param {number} min_p
 * @param {number} temperature
 * @param {number} u
 * @returns {number}
 */
export function probe_draw(logits, count, top_k, top_p, min_p, temperature, u) {
    const ret = wasm.probe_draw(logits, count, top_k, top_p, min_p, temperature, u);
    return ret >>> 0;
}

/**
 * exp of `count` numbers in place; a multiple of 4.
 *
 * # Safety
 * The pointer is of `probe_reserve` and large enough.
 * @param {number} x
 * @param {number} count
 */
export function probe_exp(x, count) {
    wasm.probe_exp(x, count);
}

/**
 * `out[token][row] = weights . x[token]`; rows of `out` are as many as fill whole bands. `double`: with
 * activations of 16 bits instead of 8.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 * @param {boolean} reference
 * @param {boolean} double
 * @param {number} format
 * @param {number} rows
 * @param {number} columns
 * @param {number} weights
 * @param {number} tokens
 * @param {number} x
 * @param {number} out
 */
export function probe_matmul(reference, double, format, rows, columns, weights, tokens, x, out) {
    wasm.probe_matmul(reference, double, format, rows, columns, weights, tokens, x, out);
}

/**
 * @param {number} bytes
 * @returns {number}
 */
export function probe_reserve(bytes) {
    const ret = wasm.probe_reserve(bytes);
    return ret >>> 0;
}

/**
 * Shares of the attention of three query heads that the scan finds in each block. `maps` are those of
 * a `KeySketch` of one layer and KV head, `keys` are [tokens][size], `q` [3][size]; `out` gets the sum
 * over the heads of each block.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 * @param {number} size
 * @param {number} dimensions
 * @param {number} maps
 * @param {number} tokens
 * @param {number} keys
 * @param {number} q
 * @param {number} out
 */
export function probe_shares(size, dimensions, maps, tokens, keys, q, out) {
    wasm.probe_shares(size, dimensions, maps, tokens, keys, q, out);
}

/**
 * Statistics of a row; `out` gets the five numbers of `Stats`.
 *
 * # Safety
 * The pointers are of `probe_reserve` and large enough.
 * @param {number} logits
 * @param {number} count
 * @param {number} end_token
 * @param {number} top_k
 * @param {number} ids
 * @param {number} best
 * @param {number} out
 */
export function probe_statistics(logits, count, end_token, top_k, ids, best, out) {
    wasm.probe_statistics(logits, count, end_token, top_k, ids, best, out);
}

/**
 * Lends the calling thread to a team until the team is stopped.
 *
 * # Safety
 * `team` is of `Core::team`, in the same memory.
 * @param {number} team
 */
export function serve_team(team) {
    wasm.serve_team(team);
}

/**
 * Sends the workers home.
 *
 * # Safety
 * As for `serve_team`.
 * @param {number} team
 */
export function stop_team(team) {
    wasm.stop_team(team);
}
function __wbg_get_imports(memory) {
    const import0 = {
        __proto__: null,
        __wbg___wbindgen_throw_4c88d8bf264fd984: function(arg0, arg1) {
            throw new Error(getStringFromWasm0(arg0, arg1));
        },
        __wbindgen_init_externref_table: function() {
            const table = wasm.__wbindgen_externrefs;
            table.set(0, undefined);
            table.set(1024, undefined);
            table.set(1025, null);
            table.set(1026, true);
            table.set(1027, false);
        },
        memory: memory || new WebAssembly.Memory({initial:18,maximum:65536,shared:true}),
    };
    return {
        __proto__: null,
        "./kernels_threads_bg.js": import0,
    };
}

const CoreFinalization = (typeof FinalizationRegistry === 'undefined')
    ? { register: () => {}, unregister: () => {} }
    : new FinalizationRegistry(ptr => wasm.__wbg_core_free(ptr, 1));

function getStringFromWasm0(ptr, len) {
    ptr = ptr >>> 0;
    return decodeText(getUint8ArrayMemory0().subarray(ptr, ptr + len));
}

let cachedUint8ArrayMemory0 = null;
function getUint8ArrayMemory0() {
    if (cachedUint8ArrayMemory0 === null || cachedUint8ArrayMemory0.buffer !== wasm.memory.buffer) {
        cachedUint8ArrayMemory0 = new Uint8Array(wasm.memory.buffer);
    }
    return cachedUint8ArrayMemory0;
}

let cachedTextDecoder = (typeof TextDecoder !== 'undefined' ? new TextDecoder('utf-8', { ignoreBOM: true }) : undefined);
if (cachedTextDecoder) cachedTextDecoder.decode();

const MAX_SAFARI_DECODE_BYTES = 2146435072;
let numBytesDecoded = 0;
function decodeText(bytes) {
    numBytesDecoded += bytes.length;
    if (numBytesDecoded >= MAX_SAFARI_DECODE_BYTES) {
        cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
        cachedTextDecoder.decode();
        numBytesDecoded = bytes.length;
    }
    return cachedTextDecoder.decode(bytes.slice());
}

let wasmModule, wasmInstance, wasm;
function __wbg_finalize_init(instance, module, thread_stack_size) {
    wasmInstance = instance;
    wasm = instance.exports;
    wasmModule = module;
    cachedUint8ArrayMemory0 = null;
    if (typeof thread_stack_size !== 'undefined' && (typeof thread_stack_size !== 'number' || thread_stack_size === 0 || thread_stack_size % 65536 !== 0)) {
        throw new Error('invalid stack size');
    }

    wasm.__wbindgen_start(thread_stack_size);
    return wasm;
}

async function __wbg_load(module, imports) {
    if (typeof Response === 'function' && module instanceof Response) {
        if (!module.ok) {
            throw new Error(`failed to fetch Wasm: ${module.status} ${module.statusText} fetching '${module.url}'`);
        }

        if (typeof WebAssembly.instantiateStreaming === 'function') {
            try {
                return await WebAssembly.instantiateStreaming(module, imports);
            } catch (e) {
                const validResponse = expectedResponseType(module.type);

                if (validResponse && module.headers.get('Content-Type') !== 'application/wasm') {
                    console.warn("`WebAssembly.instantiateStreaming` failed because your server does not serve Wasm with `application/wasm` MIME type. Falling back to `WebAssembly.instantiate` which is slower. Original error:\n", e);

                } else { throw e; }
            }
        }

        const bytes = await module.arrayBuffer();
        return await WebAssembly.instantiate(bytes, imports);
    } else {
        const instance = await WebAssembly.instantiate(module, imports);

        if (instance instanceof WebAssembly.Instance) {
            return { instance, module };
        } else {
            return instance;
        }
    }

    function expectedResponseType(type) {
        switch (type) {
            case 'basic': case 'cors': case 'default': return true;
        }
        return false;
    }
}

function initSync(module, memory) {
    if (wasm !== undefined) return wasm;

    let thread_stack_size
    if (module !== undefined) {
        if (Object.getPrototypeOf(module) === Object.prototype) {
            ({module, memory, thread_stack_size} = module)
        } else {
            console.warn('using deprecated parameters for `initSync()`; pass a single object instead')
        }
    }

    const imports = __wbg_get_imports(memory);
    if (!(module instanceof WebAssembly.Module)) {
        module = new WebAssembly.Module(module);
    }
    const instance = new WebAssembly.Instance(module, imports);
    return __wbg_finalize_init(instance, module, thread_stack_size);
}

let __wbg_init_promise;
async function __wbg_init(module_or_path, memory) {
    if (wasm !== undefined) return wasm;
    if (__wbg_init_promise === undefined) {
        __wbg_init_promise = __wbg_init_once(module_or_path, memory);
        __wbg_init_promise.catch(() => { __wbg_init_promise = undefined; });
    }
    return __wbg_init_promise;
}

async function __wbg_init_once(module_or_path, memory) {
    let thread_stack_size
    if (module_or_path !== undefined) {
        if (Object.getPrototypeOf(module_or_path) === Object.prototype) {
            ({module_or_path, memory, thread_stack_size} = module_or_path)
        } else {
            console.warn('using deprecated parameters for the initialization function; pass a single object instead')
        }
    }

    if (module_or_path === undefined) {
        module_or_path = new URL('kernels_threads_bg.wasm', import.meta.url);
    }
    const imports = __wbg_get_imports(memory);

    if (typeof module_or_path === 'string' || (typeof Request === 'function' && module_or_path instanceof Request) || (typeof URL === 'function' && module_or_path instanceof URL)) {
        module_or_path = fetch(module_or_path);
    }

    const { instance, module } = await __wbg_load(await module_or_path, imports);

    return __wbg_finalize_init(instance, module, thread_stack_size);
}

export { initSync, __wbg_init as default };
