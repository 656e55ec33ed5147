//! Attention over `Q8` blocks in integer dots: query int8 against int8 keys, then probabilities as
//! 7 bits, with the values' scales folded in and scaled to the block's largest, against int8 values.
//! Three passes over a part of the blocks: scores, weights, values; then the parts are joined in order
//! (as in arXiv 2205.14135). A token's result depends on its own KV in the order of the positions, and
//! on nothing else, whoever computes a part. Heads of a group share each load. Up
//! to `PART` blocks nothing is allocated, for all threads spin on the allocator's one lock.

use crate::cache::{BLOCK, Q8Layout, hadamard_size, peak, scale_for};
use crate::isa::Isa;
use crate::math::{self, max_lane};
use crate::records::Records;
use core::arch::wasm32::*;
use core::mem::MaybeUninit;
use core::ops::DerefMut;

/// Blocks of a part: the scratch of its three passes stays in the nearest cache.
pub const PART: usize = 64;
/// Largest head that the scratch below holds.
pub const MAX_HEAD: usize = 256;
/// Query heads that share each load.
pub const HEADS: usize = 4;
/// Dimension groups whose sums stay in registers together.
const GROUPS: usize = 4;

/// What one query head has for one block: scores, later probabilities.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct BlockWeights {
    scores: [v128; 4],
    /// Integer weights of the 16 tokens as `Isa` stores activations.
    values: [u8; 2 * BLOCK],
    /// What one unit of `values` is worth.
    step: f32,
}

/// A query head: int8 values as `Isa` stores them, and their scale.
struct Query {
    values: [u8; 2 * MAX_HEAD],
    scale: f32,
}

/// Transforms and quantises a head of at most `MAX_HEAD` elements.
fn write_query<I: Isa>(q: &[f32], to: &mut MaybeUninit<Query>) {
    let mut turned = [const { MaybeUninit::uninit() }; MAX_HEAD];
    let turned = turned[..q.len()].write_copy_of_slice(q);
    let transformed = hadamard_size(q.len());
    math::hadamard(turned, transformed);
    let (scale, inverse) = scale_for(peak(turned));
    let to = to.as_mut_ptr();
    for (pack, q) in turned.chunks_exact(16).enumerate() {
        let x = core::array::from_fn(|i| unsafe { math::load(q, 4 * i) });
        let integers = quantize(x, f32x4_splat(inverse));
        unsafe { I::store_query((&raw mut (*to).values).cast::<u8>().add(32 * pack), integers) };
    }
    unsafe { (*to).scale = scale / (transformed as f32 * (q.len() as f32).sqrt()) };
}

#[inline(always)]
fn quantize(x: [v128; 4], inverse: v128) -> [v128; 4] {
    x.map(|x| i32x4_trunc_sat_f32x4(f32x4_nearest(f32x4_mul(x, inverse))))
}

/// Attention of at most `HEADS` rotated query heads of one KV head; `q` and `out` are [heads][size].
pub unsafe fn attend<I: Isa>(q: &[f32], size: usize, records: Records, out: &mut [f32]) {
    let mut parts = records.parts(PART);
    let first = parts.next().expect("a context has a token");
    let mut whole = unsafe { Partial::of::<I>(q, size, first, out) };
    for part in parts {
        whole.join(&unsafe { Partial::of::<I>(q, size, part, vec![0.0; q.len()]) });
    }
    whole.finish();
}

/// Writes the attention that the parts of a context make together, in their order, [heads][size].
pub fn join(mut parts: impl Iterator<Item = Partial<Vec<f32>>>, out: &mut [f32]) {
    let Partial { size, sums, masses } = parts.next().expect("a context has a token");
    out.copy_from_slice(&sums);
    let mut whole = Partial { size, sums: out, masses };
    parts.for_each(|next| whole.join(&next));
    whole.finish();
}

/// The largest score of a head, and the sum of its e^(score - max).
type Mass = (f32, f32);

/// What at most `HEADS` query heads have of a part of their context, before the softmax is divided by
/// its sum.
pub struct Partial<S> {
    size: usize,
    /// Values weighted by e^(score - max), [heads][size].
    sums: S,
    masses: [Mass; HEADS],
}

impl<S: DerefMut<Target = [f32]>> Partial<S> {
    /// Attends to at most `PART` blocks; `sums` is overwritten.
    pub unsafe fn of<I: Isa>(q: &[f32], size: usize, part: Records, mut sums: S) -> Partial<S> {
        let mut masses = [(0.0, 0.0); HEADS];
        unsafe {
            match q.len() / size {
                1 => attend_part::<I, 1>(q, size, part, &mut sums, &mut masses),
                2 => attend_part::<I, 2>(q, size, part, &mut sums, &mut masses),
                3 => attend_part::<I, 3>(q, size, part, &mut sums, &mut masses),
                _ => attend_part::<I, HEADS>(q, size, part, &mut sums, &mut masses),
            }
        }
        Partial { size, sums, masses }
    }

    /// Adds the part that comes next.
    fn join(&mut self, next: &Partial<Vec<f32>>) {
        let heads = self.sums.chunks_exact_mut(self.size).zip(next.sums.chunks_exact(self.size));
        let masses = self.masses.iter_mut().zip(&next.masses);
        for ((sums, next), (mass, &(next_max, next_total))) in heads.zip(masses) {
            let max = mass.0.max(next_max);
            let factors = math::exp(f32x4(mass.0 - max, next_max - max, 0.0, 0.0));
            let (own, other) = (f32x4_extract_lane::<0>(factors), f32x4_extract_lane::<1>(factors));
            sums.iter_mut().zip(next).for_each(|(sum, next)| *sum = *sum * own + next * other);
            *mass = (max, mass.1 * own + next_total * other);
        }
    }

    /// Leaves the attention in `sums`.
    fn finish(&mut self) {
        for (sums, &(_, total)) in self.sums.chunks_exact_mut(self.size).zip(&self.masses) {
            let inverse = 1.0 / total;
            sums.iter_mut().for_each(|sum| *sum *= inverse);
        }
    }
}

/// Attends `H` heads to a part.
unsafe fn attend_part<I: Isa, const H: usize>(
    q: &[f32],
    size: usize,
    part: Records,
    sums: &mut [f32],
    masses: &mut [Mass; HEADS],
) {
    let mut queries = [const { MaybeUninit::uninit() }; H];
    for (q, query) in q.chunks_exact(size).zip(&mut queries) {
        write_query::<I>(q, query);
    }
    let queries = unsafe { &*queries.as_ptr().cast::<[Query; H]>() };
    let mut scratch = [const { MaybeUninit::<[BlockWeights; H]>::uninit() }; PART];
    let scratch = unsafe { scratch[..part.len()].assume_init_mut() };
    let mut max = [f32x4_splat(f32::NEG_INFINITY); H];
    for (i, (record, block)) in part.iter().zip(scratch.iter_mut()).enumerate() {
        let left = part.tokens() - i * BLOCK;
        unsafe { score_block::<I, H>(queries, size, record, left, block, &mut max) };
    }
    let max = max.map(max_lane);
    let mut total = [f32x4_splat(0.0); H];
    for (record, block) in part.iter().zip(scratch.iter_mut()) {
        unsafe {
            let scales = record.add(Q8Layout::new(size).value_scales).cast::<v128>();
            let scales: [v128; 4] = core::array::from_fn(|i| v128_load(scales.add(i)));
            for h in 0..H {
                total[h] = weigh_block::<I>(&mut block[h], max[h], scales, total[h]);
            }
        }
    }
    for first in (0..size / 4).step_by(GROUPS) {
        unsafe { sum_values::<I, H>(part, scratch, size, first, sums) };
    }
    for h in 0..H {
        masses[h] = (max[h], math::sum(total[h]));
    }
}

/// Scores of a block's 16 tokens; -Infinity from token `left` on.
#[inline(always)]
unsafe fn score_block<I: Isa, const H: usize>(
    queries: &[Query; H],
    size: usize,
    record: *const u8,
    left: usize,
    block: &mut [BlockWeights; H],
    max: &mut [v128; H],
) {
    let at = Q8Layout::new(size);
    for half in 0..2 {
        let dots = unsafe { key_dots::<I, H>(queries, size, record.add(at.keys + 32 * half)) };
        for i in 0..2 {
            let first = 8 * half + 4 * i;
            let scale = unsafe { v128_load(record.add(at.key_scales + 4 * first).cast()) };
            let offset = unsafe { v128_load(record.add(at.key_offsets + 4 * first).cast()) };
            for h in 0..H {
                let dot = f32x4_convert_i32x4(i32x4_sub(dots[h][i], offset));
                let scale = f32x4_mul(scale, f32x4_splat(queries[h].scale));
                let mut score = f32x4_mul(dot, scale);
                if left < BLOCK {
                    let lanes = i32x4_add(i32x4(0, 1, 2, 3), i32x4_splat(first as i32));
                    let keep = i32x4_lt(lanes, i32x4_splat(left as i32));
                    score = v128_bitselect(score, f32x4_splat(f32::NEG_INFINITY), keep);
                }
                block[h].scores[2 * half + i] = score;
                max[h] = f32x4_max(max[h], score);
            }
        }
    }
}

/// Products of all heads with eight tokens' keys.
#[inline(always)]
unsafe fn key_dots<I: Isa, const H: usize>(
    queries: &[Query; H],
    size: usize,
    keys: *const u8,
) -> [[v128; 2]; H] {
    let mut dots = [[i32x4_splat(0); 2]; H];
    // Sums of eight groups of four dimensions fit before they are widened.
    for first in (0..size / 16).step_by(2) {
        let mut sums = [[I::key_zero(); 2]; H];
        for pack in first..(first + 2).min(size / 16) {
            unsafe {
                let q: [[I::Query; 4]; H] = core::array::from_fn(|h| {
                    I::load_query(queries[h].values.as_ptr().add(32 * pack))
                });
                for group in 0..4 {
                    let keys = keys.add(256 * pack + 64 * group).cast::<v128>();
                    for i in 0..2 {
                        let keys = v128_load(keys.add(i));
                        for h in 0..H {
                            sums[h][i] = I::key_dot(sums[h][i], keys, q[h][group]);
                        }
                    }
                }
            }
        }
        for h in 0..H {
            for i in 0..2 {
                dots[h][i] = i32x4_add(dots[h][i], I::key_widen(sums[h][i]));
            }
        }
    }
    dots
}

/// Turns a block's scores into integer weights for its values. Returns `total` with the
/// probabilities, not yet divided by their sum, added.
#[inline(always)]
unsafe fn weigh_block<I: Isa>(
    block: &mut BlockWeights,
    max: f32,
    scales: [v128; 4],
    total: v128,
) -> v128 {
    let p = block.scores.map(|score| math::exp(f32x4_sub(score, f32x4_splat(max))));
    let sum = f32x4_add(f32x4_add(p[0], p[1]), f32x4_add(p[2], p[3]));
    let p: [v128; 4] = core::array::from_fn(|i| f32x4_mul(p[i], scales[i]));
    let (step, inverse) = scale_for(math::peak(p));
    unsafe { I::store_pack(block.values.as_mut_ptr(), quantize(p, f32x4_splat(inverse))) };
    block.step = step;
    f32x4_add(total, sum)
}

/// Weighted sums of dimension groups `first ..` over all blocks.
#[inline(always)]
unsafe fn sum_values<I: Isa, const H: usize>(
    part: Records,
    scratch: &[[BlockWeights; H]],
    size: usize,
    first: usize,
    out: &mut [f32],
) {
    let mut sums = [[f32x4_splat(0.0); GROUPS]; H];
    for (record, block) in part.iter().zip(scratch) {
        unsafe {
            let values = record.add(Q8Layout::new(size).values + 64 * first);
            let p: [[I::Splat; 4]; H] =
                core::array::from_fn(|h| I::splats(I::load_pack(block[h].values.as_ptr())));
            for group in 0..GROUPS {
                let mut dots = [i32x4_splat(0); H];
                for tokens in 0..4 {
                    let v = v128_load(values.add(64 * group + 16 * tokens).cast());
                    for h in 0..H {
                        dots[h] = I::dot_signed(dots[h], v, p[h][tokens]);
                    }
                }
                for h in 0..H {
                    let step = f32x4_splat(block[h].step);
                    let add = f32x4_mul(f32x4_convert_i32x4(dots[h]), step);
                    sums[h][group] = f32x4_add(sums[h][group], add);
                }
            }
        }
    }
    for h in 0..H {
        for group in 0..GROUPS {
            unsafe { math::save(out, h * size + 4 * (first + group), sums[h][group]) };
        }
    }
}
