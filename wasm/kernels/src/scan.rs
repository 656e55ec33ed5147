//! The cheap look at every key: from sketched keys to the share of the attention that each block holds.

use crate::activations::TINY;
use crate::cache::{BLOCK, peak, scale_for};
use crate::isa::Isa;
use crate::math::{self, max_lane};
use core::arch::wasm32::*;

/// Largest number of pairs of dimension groups: 32 dimensions, whose sums fit before they are widened.
pub const MAX_PAIRS: usize = 4;

/// The codes of one head's blocks, in the order of the positions.
pub struct Codes<'a> {
    /// [blocks][code bytes]
    pub data: *const u8,
    pub bytes: usize,
    /// Physical block of each 16 positions.
    pub blocks: &'a [u32],
}

impl Codes<'_> {
    fn block(&self, i: usize) -> *const u8 {
        unsafe { self.data.add(self.blocks[i] as usize * self.bytes) }
    }
}

/// A mapped query in 8 bits: the repeated fours of each group, and what a unit of a dot is worth in
/// powers of two.
struct Query<I: Isa, const PAIRS: usize> {
    low: [I::Splat; PAIRS],
    high: [I::Splat; PAIRS],
    unit: f32,
}

impl<I: Isa, const PAIRS: usize> Query<I, PAIRS> {
    fn new(q: &[f32]) -> Self {
        let mut padded = [0.0; 8 * MAX_PAIRS];
        padded[..q.len()].copy_from_slice(q);
        let (scale, inverse) = scale_for(peak(q));
        let mut splats = [None; 2 * MAX_PAIRS];
        for pack in 0..MAX_PAIRS / 2 {
            let mut stored = [0u8; 32];
            let integers = core::array::from_fn(|i| unsafe {
                let x = f32x4_mul(math::load(&padded, 16 * pack + 4 * i), f32x4_splat(inverse));
                i32x4_trunc_sat_f32x4(f32x4_nearest(x))
            });
            unsafe { I::store_pack(stored.as_mut_ptr(), integers) };
            let fours = I::splats(unsafe { I::load_pack(stored.as_ptr()) });
            for (i, four) in fours.into_iter().enumerate() {
                splats[4 * pack + i] = Some(four);
            }
        }
        let splat = |i: usize| splats[i].expect("every group is set");
        Query {
            low: core::array::from_fn(|pair| splat(2 * pair)),
            high: core::array::from_fn(|pair| splat(2 * pair + 1)),
            unit: scale * core::f32::consts::LOG2_E,
        }
    }
}

/// 2^x in fixed point: added to x, the low bits are those of the exponent's field and ten more, which
/// a shift moves to their place. Piecewise linear, at most 6 % too high; weights of blocks need no more.
const FRACTION: u32 = 10;
const EXPONENT: f32 = (1u32 << (23 - FRACTION)) as f32 * 1.5 + 127.0;
const LOWEST: f32 = EXPONENT - 126.0;
const HIGHEST: f32 = EXPONENT + 100.0;

/// Adds, to each block's entry in `shares`, its share of the attention of `H` mapped queries, over all
/// of the first `tokens` tokens. `q` is [H][dimensions].
pub fn add_shares<I: Isa, const H: usize>(
    q: &[f32],
    dimensions: usize,
    codes: &Codes,
    tokens: usize,
    shares: &mut [f32],
) {
    match dimensions / 8 {
        2 => add::<I, H, 2>(q, codes, tokens, shares),
        3 => add::<I, H, 3>(q, codes, tokens, shares),
        _ => add::<I, H, MAX_PAIRS>(q, codes, tokens, shares),
    }
}

fn add<I: Isa, const H: usize, const PAIRS: usize>(
    q: &[f32],
    codes: &Codes,
    tokens: usize,
    shares: &mut [f32],
) {
    let queries: [Query<I, PAIRS>; H] =
        core::array::from_fn(|h| Query::new(&q[8 * PAIRS * h..8 * PAIRS * (h + 1)]));
    let last = codes.blocks.len() - 1;
    // Weights are relative to the largest at the ends, which hold the sink and the neighbours.
    let mut most = [f32x4_splat(f32::NEG_INFINITY); H];
    for block in [0, last.saturating_sub(1)] {
        for group in 0..4 {
            let dots = unsafe { dots(&queries, codes.block(block).add(16 * group)) };
            for h in 0..H {
                most[h] = f32x4_max(most[h], f32x4_convert_i32x4(dots[h]));
            }
        }
    }
    let unit: [v128; H] = core::array::from_fn(|h| f32x4_splat(queries[h].unit));
    let start: [v128; H] =
        core::array::from_fn(|h| f32x4_splat(EXPONENT - max_lane(most[h]) * queries[h].unit));
    let mut weights: Vec<[v128; H]> = Vec::with_capacity(codes.blocks.len());
    let mut total = [f32x4_splat(0.0); H];
    for block in 0..=last {
        let left = tokens - block * BLOCK;
        let mut sums = [f32x4_splat(0.0); H];
        for group in 0..4 {
            let dots = unsafe { dots(&queries, codes.block(block).add(16 * group)) };
            for h in 0..H {
                let x = f32x4_add(f32x4_mul(f32x4_convert_i32x4(dots[h]), unit[h]), start[h]);
                let x = f32x4_pmin(f32x4_splat(HIGHEST), f32x4_pmax(f32x4_splat(LOWEST), x));
                let mut weight = i32x4_shl(x, 23 - FRACTION);
                if left < BLOCK {
                    let lanes = i32x4_add(i32x4(0, 1, 2, 3), i32x4_splat(4 * group as i32));
                    weight = v128_and(weight, i32x4_lt(lanes, i32x4_splat(left as i32)));
                }
                sums[h] = f32x4_add(sums[h], weight);
            }
        }
        for h in 0..H {
            total[h] = f32x4_add(total[h], sums[h]);
        }
        weights.push(sums);
    }
    let inverse = total.map(|total| f32x4_splat(1.0 / math::sum(total).max(TINY)));
    for (share, weights) in shares.iter_mut().zip(&weights) {
        for h in 0..H {
            *share += math::sum(f32x4_mul(weights[h], inverse[h]));
        }
    }
}

/// Products of all queries with four tokens' codes.
#[inline(always)]
unsafe fn dots<I: Isa, const H: usize, const PAIRS: usize>(
    queries: &[Query<I, PAIRS>; H],
    codes: *const u8,
) -> [v128; H] {
    let mut sums = [None; H];
    for pair in 0..PAIRS {
        let codes = unsafe { v128_load(codes.add(64 * pair).cast()) };
        let low = v128_and(codes, u8x16_splat(15));
        let high = u8x16_shr(codes, 4);
        for h in 0..H {
            let dot = I::narrow_add(
                I::narrow_dot(low, queries[h].low[pair]),
                I::narrow_dot(high, queries[h].high[pair]),
            );
            sums[h] = Some(sums[h].map_or(dot, |sum| I::narrow_add(sum, dot)));
        }
    }
    let one = I::factor(1);
    sums.map(|sum| I::widen(sum.expect("PAIRS is positive"), one))
}
