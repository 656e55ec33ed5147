//! Weights of 4 bits (Q4_0, Q4_1, Q4_K) against int8 activations.

use super::{Kernel, Sums, Tile, accumulate, lane, nibbles, opaque, splats, tail, unroll, vector};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{NIBBLE_BYTES, QUADS};
use core::arch::wasm32::*;

pub struct Nibble;

impl Kernel for Nibble {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let (mask, one) = (opaque(u8x16_splat(15)), opaque(I::factor(1)));
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                let low = tokens.map(|token| splats::<I>(token, 0));
                let high = tokens.map(|token| splats::<I>(token, 1));
                let mut dots = [[i32x4_splat(0); T]; QUADS];
                unroll!(v < 4, {
                    unroll!(quad < QUADS, {
                        let (x, y) = nibbles(vector(w.add(quad * NIBBLE_BYTES + 16 * v)), mask);
                        unroll!(t < T, {
                            let x = I::narrow_dot(x, low[t][v]);
                            let dot = I::narrow_add(x, I::narrow_dot(y, high[t][v]));
                            dots[quad][t] = I::narrow_add(dots[quad][t], dot);
                        });
                    });
                });
                unroll!(quad < QUADS, {
                    let scale = vector(w.add(quad * NIBBLE_BYTES + 64));
                    let min = vector(w.add(quad * NIBBLE_BYTES + 80));
                    unroll!(t < T, {
                        let tail = tail::<I>(tokens[t]);
                        let dot = I::widen(dots[quad][t], one);
                        let sum = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                        sums[quad][t] = f32x4_add(sum, f32x4_mul(min, lane::<1>(tail)));
                    });
                });
                w = w.add(QUADS * NIBBLE_BYTES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}
