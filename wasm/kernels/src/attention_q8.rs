//! Attention over `Q8` blocks in integer dots: query int8 against 7-bit keys, then probabilities as
//! 7 bits, with the values' scales folded in and scaled to the block's largest, against int8 values.
//! Softmax is online (arXiv 1805.02867), block by block in the order of the positions, so a token's
//! result depends on its own KV and on nothing else. All heads of a group share each loaded vector.

use crate::activations::{TINY, max_lane};
use crate::cache::{BLOCK, KEY_BIAS, hadamard_size, peak, scale_for};
use crate::isa::Isa;
use crate::math;
use core::arch::wasm32::*;

/// Largest head that the scratch below holds.
pub const MAX_HEAD: usize = 256;

/// A query head: int8 values as `Isa` stores them, its scale, and what the keys' bias adds.
#[derive(Clone, Copy)]
struct Query {
    values: [u8; 2 * MAX_HEAD],
    scale: f32,
    offset: i32,
}

impl Query {
    const NONE: Query = Query { values: [0; 2 * MAX_HEAD], scale: 0.0, offset: 0 };

    /// Transforms and quantises a query in place of `self`.
    fn set<I: Isa>(&mut self, q: &mut [f32]) {
        let transformed = hadamard_size(q.len());
        math::hadamard(q, transformed);
        let (scale, inverse) = scale_for(peak(q), 127.0);
        let mut sum = 0;
        for (i, x) in q.iter().enumerate() {
            let value = (x * inverse).round_ties_even() as i8;
            sum += value as i32;
            unsafe { I::store_value(self.values.as_mut_ptr().add(i * I::VALUE_BYTES), value) };
        }
        self.scale = scale / (transformed as f32 * (q.len() as f32).sqrt());
        self.offset = KEY_BIAS * sum;
    }
}

/// Running softmax of one head.
#[derive(Clone, Copy)]
struct Softmax {
    max: f32,
    /// Four partial sums of exp(score - max).
    total: v128,
    sums: [v128; MAX_HEAD / 4],
}

/// Attends `H` query heads of `q` (each `size` long, changed in place) to the first `tokens` tokens
/// of the given records, and writes the heads' results to `out`.
pub unsafe fn attend<I: Isa, const H: usize>(
    q: &mut [f32],
    size: usize,
    records: impl Iterator<Item = *const u8>,
    tokens: usize,
    out: &mut [f32],
) {
    let mut queries = [Query::NONE; H];
    for (query, q) in queries.iter_mut().zip(q.chunks_exact_mut(size)) {
        query.set::<I>(q);
    }
    let zero = f32x4_splat(0.0);
    let mut heads =
        [Softmax { max: f32::NEG_INFINITY, total: zero, sums: [zero; MAX_HEAD / 4] }; H];
    let mut left = tokens;
    for record in records {
        unsafe {
            let scores = scores::<I, H>(&queries, size, record, left);
            let values = record.add(BLOCK * (size + 4));
            let (weights, steps) =
                weights::<I, H>(&scores, &mut heads, size, values.add(BLOCK * size).cast());
            add_values::<I, H>(&weights, &steps, &mut heads, size, values);
        }
        left = left.saturating_sub(BLOCK);
    }
    for (head, out) in heads.iter().zip(out.chunks_exact_mut(size)) {
        let inverse = f32x4_splat(1.0 / math::sum(head.total));
        for (i, &sum) in head.sums.iter().take(size / 4).enumerate() {
            unsafe { math::save(out, 4 * i, f32x4_mul(sum, inverse)) };
        }
    }
}

/// Scores of a block's 16 tokens; -Infinity from token `left` on.
#[inline(always)]
unsafe fn scores<I: Isa, const H: usize>(
    queries: &[Query; H],
    size: usize,
    record: *const u8,
    left: usize,
) -> [[v128; 4]; H] {
    let scales = unsafe { record.add(BLOCK * size).cast::<v128>() };
    let mut scores = [[f32x4_splat(0.0); 4]; H];
    for half in 0..2 {
        let mut dots = [[i32x4_splat(0); 2]; H];
        for group in 0..size / 4 {
            unsafe {
                let keys = record.add(64 * group + 32 * half).cast::<v128>();
                let (first, second) = (v128_load(keys), v128_load(keys.add(1)));
                for h in 0..H {
                    let q = I::splat(queries[h].values.as_ptr().add(4 * group * I::VALUE_BYTES));
                    dots[h][0] = I::dot_unsigned(dots[h][0], first, q);
                    dots[h][1] = I::dot_unsigned(dots[h][1], second, q);
                }
            }
        }
        for h in 0..H {
            for i in 0..2 {
                let dot = i32x4_sub(dots[h][i], i32x4_splat(queries[h].offset));
                let scale = unsafe { v128_load(scales.add(2 * half + i)) };
                let scale = f32x4_mul(scale, f32x4_splat(queries[h].scale));
                scores[h][2 * half + i] = f32x4_mul(f32x4_convert_i32x4(dot), scale);
            }
        }
    }
    if left < BLOCK {
        for (i, lanes) in [0, 4, 8, 12].map(|i| i32x4(i, i + 1, i + 2, i + 3)).iter().enumerate() {
            let keep = i32x4_lt(*lanes, i32x4_splat(left as i32));
            for scores in &mut scores {
                scores[i] = v128_bitselect(scores[i], f32x4_splat(f32::NEG_INFINITY), keep);
            }
        }
    }
    scores
}

/// One head's 16 weights as `Isa` stores activations.
type Weights = [u8; 2 * BLOCK];

/// Takes a block's scores into the running softmax. Returns integer weights in 0 ..= 127 for the
/// values, and what one of their units is worth.
#[inline(always)]
unsafe fn weights<I: Isa, const H: usize>(
    scores: &[[v128; 4]; H],
    heads: &mut [Softmax; H],
    size: usize,
    value_scales: *const v128,
) -> ([Weights; H], [f32; H]) {
    let mut weights = [[0; 2 * BLOCK]; H];
    let mut steps = [0.0; H];
    for h in 0..H {
        let (head, s) = (&mut heads[h], &scores[h]);
        let block_max = max_lane(f32x4_pmax(f32x4_pmax(s[0], s[1]), f32x4_pmax(s[2], s[3])));
        if block_max > head.max {
            let shrink = math::exp(f32x4_splat(head.max - block_max));
            head.max = block_max;
            head.total = f32x4_mul(head.total, shrink);
            for sum in &mut head.sums[..size / 4] {
                *sum = f32x4_mul(*sum, shrink);
            }
        }
        let p = s.map(|s| math::exp(f32x4_sub(s, f32x4_splat(head.max))));
        for p in p {
            head.total = f32x4_add(head.total, p);
        }
        let p: [v128; 4] =
            core::array::from_fn(|i| unsafe { f32x4_mul(p[i], v128_load(value_scales.add(i))) });
        let peak = max_lane(f32x4_pmax(f32x4_pmax(p[0], p[1]), f32x4_pmax(p[2], p[3])));
        let (step, inverse) = if peak < TINY { (0.0, 0.0) } else { (peak / 127.0, 127.0 / peak) };
        steps[h] = step;
        let q = p.map(|p| i32x4_trunc_sat_f32x4(f32x4_nearest(f32x4_mul(p, f32x4_splat(inverse)))));
        unsafe { I::store_values(weights[h].as_mut_ptr(), q) };
    }
    (weights, steps)
}

#[inline(always)]
unsafe fn add_values<I: Isa, const H: usize>(
    weights: &[Weights; H],
    steps: &[f32; H],
    heads: &mut [Softmax; H],
    size: usize,
    values: *const u8,
) {
    for group in 0..size / 4 {
        unsafe {
            let mut dots = [i32x4_splat(0); H];
            for tokens in 0..4 {
                let v = v128_load(values.add(64 * group + 16 * tokens).cast());
                for h in 0..H {
                    let p = I::splat(weights[h].as_ptr().add(4 * tokens * I::VALUE_BYTES));
                    dots[h] = I::dot_signed(dots[h], v, p);
                }
            }
            for h in 0..H {
                let add = f32x4_mul(f32x4_convert_i32x4(dots[h]), f32x4_splat(steps[h]));
                let sum = heads[h].sums.get_unchecked_mut(group);
                *sum = f32x4_add(*sum, add);
            }
        }
    }
}
