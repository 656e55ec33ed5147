//! Weights of 4 bits (Q4_0, Q4_1, Q4_K), or of 5 (Q5_0, Q5_1, Q5_K), against int8 activations.

use super::{
    Kernel, Sums, Tile, accumulate, half_constants, halves, lane, nibbles, opaque, repeat, splat,
    tail, unroll, vector,
};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{QUADS, nibble_bytes};
use core::arch::wasm32::*;

/// With a fifth bit, and with scales and minima in halves.
pub struct Nibble<const FIFTH: bool, const HALF: bool>;

impl<const FIFTH: bool, const HALF: bool> Kernel for Nibble<FIFTH, HALF> {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let bytes = nibble_bytes(FIFTH, HALF);
        let (mask, one) = (opaque(u8x16_splat(15)), opaque(I::factor(1)));
        let steps = opaque(4);
        let (bit, constants) = (opaque(u8x16_splat(16)), half_constants().map(opaque));
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                let dots = if FIFTH {
                    let dots = |w| five_bits::<I, T>(w, tokens, steps, [mask, bit, one]);
                    [dots(w), dots(w.add(bytes))]
                } else {
                    let quads = [w, w.add(bytes)];
                    four_bits::<I, T>(quads, tokens, steps, mask)
                        .map(|q| q.map(|d| I::widen(d, one)))
                };
                unroll!(quad < QUADS, {
                    let at = w.add((quad + 1) * bytes);
                    let [scale, min] = if HALF {
                        halves(vector(at.sub(16)), constants)
                    } else {
                        [vector(at.sub(32)), vector(at.sub(16))]
                    };
                    unroll!(t < T, {
                        let tail = tail::<I>(tokens[t]);
                        let sum = accumulate(sums[quad][t], dots[quad][t], scale, lane::<0>(tail));
                        sums[quad][t] = f32x4_add(sum, f32x4_mul(min, lane::<1>(tail)));
                    });
                });
                w = w.add(QUADS * bytes);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}

/// Dots of both quads, not yet widened: pair sums are at most 2 * 15 * 127, so that eight of them fit
/// 16 bits.
#[inline(always)]
unsafe fn four_bits<I: Isa, const T: usize>(
    quads: [*const u8; QUADS],
    tokens: [*const u8; T],
    steps: usize,
    mask: v128,
) -> Sums<T> {
    let mut dots = [[i32x4_splat(0); T]; QUADS];
    repeat!(v < 4, T, steps, {
        unsafe {
            let weights = quads.map(|at| nibbles(vector(at.add(16 * v)), mask));
            unroll!(t < T, {
                let (low, high) = (splat::<I, T>(tokens[t], v), splat::<I, T>(tokens[t], 4 + v));
                unroll!(quad < QUADS, {
                    let (x, y) = weights[quad];
                    let both = I::narrow_add(I::narrow_dot(x, low), I::narrow_dot(y, high));
                    dots[quad][t] = I::narrow_add(dots[quad][t], both);
                });
            });
        }
    });
    dots
}

/// Dots of one quad. Pair sums are at most 2 * 31 * 127, so that four of them fit 16 bits.
#[inline(always)]
unsafe fn five_bits<I: Isa, const T: usize>(
    quad: *const u8,
    tokens: [*const u8; T],
    steps: usize,
    [mask, bit, one]: [v128; 3],
) -> [v128; T] {
    let mut dots = [[i32x4_splat(0); 2]; T];
    // Bit v, and in the loop bit 0, is the fifth of a low nibble, that four above of a high one.
    let mut bits = unsafe { vector(quad.add(64)) };
    repeat!(v < 4, T, steps, {
        unsafe {
            let (x, y) = nibbles(vector(quad.add(16 * v)), mask);
            let x = v128_or(x, v128_and(i16x8_shl(bits, 4), bit));
            let y = v128_or(y, v128_and(bits, bit));
            bits = u16x8_shr(bits, 1);
            unroll!(t < T, {
                let (low, high) = (splat::<I, T>(tokens[t], v), splat::<I, T>(tokens[t], 4 + v));
                let [first, last] = dots[t];
                let first = I::narrow_add(first, I::narrow_dot(x, low));
                dots[t] = [first, I::narrow_add(last, I::narrow_dot(y, high))];
            });
        }
    });
    dots.map(|[first, last]| i32x4_add(I::widen(first, one), I::widen(last, one)))
}
