//! Weights of 4 bits (Q4_0, Q4_1, Q4_K), or of 5 (Q5_0, Q5_1, Q5_K), against int8 activations.

use super::{
    Kernel, Sums, Tile, accumulate, half_constants, halves, lane, nibbles, opaque, splats,
};
use super::{tail, unroll, vector};
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
        let (mask, bit) = (opaque(u8x16_splat(15)), opaque(u8x16_splat(16)));
        let (one, constants) = (opaque(I::factor(1)), half_constants().map(opaque));
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                let low = tokens.map(|token| splats::<I>(token, 0));
                let high = tokens.map(|token| splats::<I>(token, 1));
                // Pair sums are at most 2 * 15 * 127, so that eight of them fit 16 bits; those of 5
                // bits 2 * 31 * 127, so that four do.
                let mut dots = [[i32x4_splat(0); T]; QUADS];
                let mut more = [[i32x4_splat(0); T]; QUADS];
                unroll!(v < 4, {
                    unroll!(quad < QUADS, {
                        let at = w.add(quad * bytes);
                        let (mut x, mut y) = nibbles(vector(at.add(16 * v)), mask);
                        if FIFTH {
                            let bits = vector(at.add(64));
                            x = v128_or(x, v128_and(i16x8_shl(bits, 4 - v as u32), bit));
                            y = v128_or(y, v128_and(u16x8_shr(bits, v as u32), bit));
                        }
                        unroll!(t < T, {
                            let (x, y) =
                                (I::narrow_dot(x, low[t][v]), I::narrow_dot(y, high[t][v]));
                            if FIFTH {
                                dots[quad][t] = I::narrow_add(dots[quad][t], x);
                                more[quad][t] = I::narrow_add(more[quad][t], y);
                            } else {
                                dots[quad][t] = I::narrow_add(dots[quad][t], I::narrow_add(x, y));
                            }
                        });
                    });
                });
                unroll!(quad < QUADS, {
                    let at = w.add((quad + 1) * bytes);
                    let [scale, min] = if HALF {
                        halves(vector(at.sub(16)), constants)
                    } else {
                        [vector(at.sub(32)), vector(at.sub(16))]
                    };
                    unroll!(t < T, {
                        let tail = tail::<I>(tokens[t]);
                        let mut dot = I::widen(dots[quad][t], one);
                        if FIFTH {
                            dot = i32x4_add(dot, I::widen(more[quad][t], one));
                        }
                        let sum = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
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
