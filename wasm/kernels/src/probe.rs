//! Entry points for the parity tests: single kernels and their scalar references on given data. The
//! host puts data in buffers that it reserves here; pointers are byte offsets into the memory.

use crate::activations::{Activations, Precision, TILE, block_bytes};
use crate::attention_q8;
use crate::cache::{BLOCK, Cache, KvType};
use crate::draw::{Draw, draw};
use crate::formats::Format;
use crate::math;
use crate::matmul::{Output, matmul};
use crate::matrix::{BAND_ROWS, Matrix};
use crate::memory::reserve;
use crate::scan::{Codes, add_shares};
use crate::selection::{Plan, choose};
use crate::sketch::{Sketch, SketchShape};
use crate::stats::{runs, statistics};
use crate::{Native, attention_f32, scalar};
use core::slice::{from_raw_parts, from_raw_parts_mut};
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
pub fn probe_reserve(bytes: usize) -> *mut u8 {
    reserve(bytes)
}

/// `out[token][row] = weights . x[token]`; rows of `out` are as many as fill whole bands. `double`: with
/// activations of 16 bits instead of 8.
///
/// # Safety
/// The pointers are of `probe_reserve` and large enough.
#[wasm_bindgen]
#[allow(clippy::too_many_arguments)]
pub unsafe fn probe_matmul(
    reference: bool,
    double: bool,
    format: u32,
    rows: usize,
    columns: usize,
    weights: *const u8,
    tokens: usize,
    x: *const f32,
    out: *mut f32,
) {
    let format = Format::from_id(format).expect("a known format");
    let row_bytes = format.row_bytes(columns);
    let weights = unsafe { from_raw_parts(weights, rows * row_bytes) };
    let stride = rows.next_multiple_of(BAND_ROWS);
    if reference {
        let dot = if double { scalar::double_dot } else { scalar::dot };
        for token in 0..tokens {
            let x = unsafe { from_raw_parts(x.add(token * columns), columns) };
            for (row, weights) in weights.chunks_exact(row_bytes).enumerate() {
                unsafe { *out.add(token * stride + row) = dot(format, weights, x) };
            }
        }
        return;
    }
    let mut matrix = Matrix::new(format, rows, columns).expect("enough memory");
    assert!(matrix.load::<Native>(0, weights));
    let precision = if double { Precision::Double } else { Precision::Single };
    let blocks = (tokens * precision.rows()).next_multiple_of(TILE) * columns.div_ceil(32);
    let packed = reserve(blocks * block_bytes::<Native>());
    let input = Activations { tokens, columns, precision, floats: x, packed };
    unsafe {
        input.quantize::<Native>(0..input.tiles(), 0..input.blocks());
        let out = Output { data: out, stride, add: false };
        matmul::<Native>(&matrix, &input, out, 0..matrix.bands());
    }
}

/// The values of each row, after repacking.
///
/// # Safety
/// The pointers are of `probe_reserve` and large enough.
#[wasm_bindgen]
pub unsafe fn probe_dequantize(
    format: u32,
    rows: usize,
    columns: usize,
    weights: *const u8,
    out: *mut f32,
) {
    let format = Format::from_id(format).expect("a known format");
    let mut matrix = Matrix::new(format, rows, columns).expect("enough memory");
    let weights = unsafe { from_raw_parts(weights, rows * format.row_bytes(columns)) };
    assert!(matrix.load::<Native>(0, weights));
    for row in 0..rows {
        let out = unsafe { from_raw_parts_mut(out.add(row * columns), columns) };
        matrix.dequantize_row::<Native>(row, out);
    }
}

/// Attention of three query heads over one KV head. `q` is [3][size] and is changed, `keys` and
/// `values` are [tokens][size], keys are changed too; `out` is [3][size].
///
/// # Safety
/// The pointers are of `probe_reserve` and large enough.
#[wasm_bindgen]
pub unsafe fn probe_attention(
    reference: bool,
    size: usize,
    tokens: usize,
    q: *mut f32,
    keys: *mut f32,
    values: *const f32,
    out: *mut f32,
) {
    let kind = if reference { KvType::F32 } else { KvType::Q8 };
    let blocks = tokens.div_ceil(BLOCK);
    let cache = Cache::new(kind, blocks, 1, 1, size).expect("enough memory");
    for token in 0..tokens {
        unsafe {
            let key = from_raw_parts_mut(keys.add(token * size), size);
            let value = from_raw_parts(values.add(token * size), size);
            cache.write::<Native>(cache.record(0, token / BLOCK, 0), token % BLOCK, key, value);
        }
    }
    let table: Vec<u32> = (0..blocks as u32).collect();
    let records = cache.records(0, 0, &table, tokens);
    let (q, out) = unsafe { (from_raw_parts_mut(q, 3 * size), from_raw_parts_mut(out, 3 * size)) };
    unsafe {
        match kind {
            KvType::F32 => attention_f32::attend(q, size, records, out),
            KvType::Q8 => attention_q8::attend::<Native>(q, size, records, out),
        }
    }
}

/// Shares of the attention of three query heads that the scan finds in each block. `maps` are those of
/// a `KeySketch` of one layer and KV head, `keys` are [tokens][size], `q` [3][size]; `out` gets the sum
/// over the heads of each block.
///
/// # Safety
/// The pointers are of `probe_reserve` and large enough.
#[wasm_bindgen]
#[allow(clippy::too_many_arguments)]
pub unsafe fn probe_shares(
    size: usize,
    dimensions: usize,
    maps: *const f32,
    tokens: usize,
    keys: *const f32,
    q: *const f32,
    out: *mut f32,
) {
    let blocks = tokens.div_ceil(BLOCK);
    let shape = SketchShape { layers: 1, kv_heads: 1, head_size: size, blocks, dimensions };
    let maps = unsafe { from_raw_parts(maps, shape.given()) };
    let sketch = Sketch::new(shape, maps).expect("enough memory");
    for token in 0..tokens {
        unsafe {
            let key = from_raw_parts(keys.add(token * size), size);
            sketch.write::<Native>(0, 0, token / BLOCK, token % BLOCK, key);
        }
    }
    let (q, out) = unsafe { (from_raw_parts(q, 3 * size), from_raw_parts_mut(out, blocks)) };
    let mut mapped = vec![0.0; 3 * dimensions];
    for (q, mapped) in q.chunks_exact(size).zip(mapped.chunks_exact_mut(dimensions)) {
        sketch.map_query(0, 0, q, mapped);
    }
    let table: Vec<u32> = (0..blocks as u32).collect();
    let codes = Codes { data: sketch.codes(0, 0), bytes: shape.code_bytes(), blocks: &table };
    add_shares::<Native, 3>(&mapped, dimensions, &codes, tokens, out);
}

/// Chooses among `count` blocks by their shares; `chosen` gets the indices. Returns how many they are.
///
/// # Safety
/// The pointers are of `probe_reserve` and large enough.
#[wasm_bindgen]
pub unsafe fn probe_choose(
    kind: u32,
    share: f32,
    least: usize,
    count: usize,
    shares: *const f32,
    chosen: *mut u32,
) -> usize {
    let mut indices = Vec::new();
    let shares = unsafe { from_raw_parts(shares, count) };
    choose(Plan::new(kind, share, least), shares, &mut indices);
    for (i, &index) in indices.iter().enumerate() {
        unsafe { *chosen.add(i) = index as u32 };
    }
    indices.len()
}

/// Statistics of a row; `out` gets the five numbers of `Stats`.
///
/// # Safety
/// The pointers are of `probe_reserve` and large enough.
#[wasm_bindgen]
pub unsafe fn probe_statistics(
    logits: *const f32,
    count: usize,
    end_token: u32,
    top_k: usize,
    ids: *mut u32,
    best: *mut f32,
    out: *mut f64,
) {
    unsafe {
        let (ids, best) = (from_raw_parts_mut(ids, top_k), from_raw_parts_mut(best, top_k));
        let logits = from_raw_parts(logits, count);
        *out.cast() = statistics(&runs(logits, 1.0), logits, &[end_token], ids, best);
    }
}

/// The token drawn from a row; `u32::MAX` where none is possible.
///
/// # Safety
/// The pointer is of `probe_reserve` and large enough.
#[wasm_bindgen]
pub unsafe fn probe_draw(
    logits: *const f32,
    count: usize,
    top_k: usize,
    top_p: f64,
    min_p: f64,
    temperature: f64,
    u: f64,
) -> u32 {
    let logits = unsafe { from_raw_parts(logits, count) };
    draw(logits, &Draw { top_k, top_p, min_p, temperature, u }).unwrap_or(u32::MAX)
}

/// exp of `count` numbers in place; a multiple of 4.
///
/// # Safety
/// The pointer is of `probe_reserve` and large enough.
#[wasm_bindgen]
pub unsafe fn probe_exp(x: *mut f32, count: usize) {
    let x = unsafe { from_raw_parts_mut(x, count) };
    for i in (0..count).step_by(4) {
        unsafe { math::save(x, i, math::exp(math::load(x, i))) };
    }
}
