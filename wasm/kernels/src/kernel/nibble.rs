//! Weights of 4 bits (Q4_0, Q4_1, Q4_K), or of 5 (Q5_0, Q5_1, Q5_K), against int8 activations.

use super::{
    Kernel, Sums, Tile, accumulate, half_constants, halves, lane, nibbles, opaque, repeat, splat,
    tail, unroll, vector,
};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{LINE, Scales};
use core::arch::wasm32::*;

/// With a fifth bit, and with scales and minima in halves.
pub struct Nibble<const FIFTH: bool, const HALF: bool>;

impl<const FIFTH: bool, const HALF: bool> Kernel for Nibble<FIFTH, HALF> {
    const SUMS: usize = if FIFTH { 2 } else { 1 };

    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const Q: usize>(
        w: *const u8,
        first: usize,
        a: Tile,
    ) -> Sums<T, Q> {
        let scales = if HALF { Scales::Half } else { Scales::Single };
        let quants = if FIFTH { 5 * LINE } else { 4 * LINE };
        let (mask, one) = (opaque(u8x16_splat(15)), opaque(I::factor(1)));
        let steps = opaque(4);
        let (bit, constants) = (opaque(u8x16_splat(16)), half_constants().map(opaque));
        let mut sums = [[f32x4_splat(0.0); T]; Q];
        let (mut w, mut block) = (unsafe { w.add(16 * first) }, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let dots = if FIFTH {
                    five_bits::<I, T, Q>(w, block, steps, [mask, bit, one])
                } else {
                    four_bits::<I, T, Q>(w, block, steps, [mask, one])
                };
                unroll!(quad < Q, {
                    let at = w.add(quants + 16 * quad);
                    let [scale, min] = if HALF {
                        [0, 1].map(|which| halves(vector(at), which, constants))
                    } else {
                        [vector(at), vector(at.add(LINE))]
                    };
                    unroll!(t < T, {
                        let tail = tail::<I, T>(block, t);
                        let sum = accumulate(sums[quad][t], dots[quad][t], scale, lane::<0>(tail));
                        sums[quad][t] = f32x4_add(sum, f32x4_mul(min, lane::<1>(tail)));
                    });
                });
                w = w.add(quants + scales.bytes());
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}

/// Pair sums are at most 2 * 15 * 127, so that eight of them fit 16 bits.
#[inline(always)]
unsafe fn four_bits<I: Isa, const T: usize, const Q: usize>(
    w: *const u8,
    block: *const u8,
    steps: usize,
    [mask, one]: [v128; 2],
) -> Sums<T, Q> {
    let mut dots = [[i32x4_splat(0); T]; Q];
    repeat!(v < 4, steps, {
        unsafe {
            let weights: [_; Q] =
                core::array::from_fn(|quad| nibbles(vector(w.add(LINE * v + 16 * quad)), mask));
            unroll!(t < T, {
                let (low, high) = (splat::<I, T>(block, v, t), splat::<I, T>(block, 4 + v, t));
                unroll!(quad < Q, {
                    let (x, y) = weights[quad];
                    let both = I::narrow_add(I::narrow_dot(x, low), I::narrow_dot(y, high));
                    dots[quad][t] = I::narrow_add(dots[quad][t], both);
                });
            });
        }
    });
    dots.map(|quad| quad.map(|dot| I::widen(dot, one)))
}

/// Pair sums are at most 2 * 31 * 127, so that four of them fit 16 bits.
#[inline(always)]
unsafe fn five_bits<I: Isa, const T: usize, const Q: usize>(
    w: *const u8,
    block: *const u8,
    steps: usize,
    [mask, bit, one]: [v128; 3],
) -> Sums<T, Q> {
    let mut dots = [[[i32x4_splat(0); 2]; T]; Q];
    // Bit v is the fifth of a low nibble, that four above of a high one; as v grows, they move down.
    let mut bits: [v128; Q] =
        core::array::from_fn(|quad| unsafe { vector(w.add(4 * LINE + 16 * quad)) });
    repeat!(v < 4, steps, {
        unsafe {
            unroll!(quad < Q, {
                let (x, y) = nibbles(vector(w.add(LINE * v + 16 * quad)), mask);
                let x = v128_or(x, v128_and(i16x8_shl(bits[quad], 4), bit));
                let y = v128_or(y, v128_and(bits[quad], bit));
                bits[quad] = u16x8_shr(bits[quad], 1);
                unroll!(t < T, {
                    let low = splat::<I, T>(block, v, t);
                    let high = splat::<I, T>(block, 4 + v, t);
                    let [first, last] = dots[quad][t];
                    let first = I::narrow_add(first, I::narrow_dot(x, low));
                    dots[quad][t] = [first, I::narrow_add(last, I::narrow_dot(y, high))];
                });
            });
        }
    });
    dots.map(|quad| quad.map(|[first, last]| i32x4_add(I::widen(first, one), I::widen(last, one))))
}
