//! Weights of 6 bits (Q6_K), which have a scale for each 16 columns, against int8 activations.

use super::{Kernel, Sums, Tile, accumulate, lane, opaque, splat, tail, unroll, vector};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{QUADS, SIX_BYTES};
use core::arch::wasm32::*;

pub struct Six;

impl Kernel for Six {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let one = opaque(I::factor(1));
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                unroll!(half < 2, {
                    unroll!(quad < QUADS, {
                        let w = w.add((QUADS * half + quad) * SIX_BYTES);
                        let q: [v128; 4] = core::array::from_fn(|v| vector(w.add(16 * v)));
                        let (scale, min) = (vector(w.add(64)), vector(w.add(80)));
                        unroll!(t < T, {
                            // A pair sum is at most 2 * 63 * 127: two of them fit 16 bits.
                            let dot =
                                |v| I::narrow_dot(q[v], splat::<I, T>(tokens[t], 4 * half + v));
                            let first = I::narrow_add(dot(0), dot(1));
                            let last = I::narrow_add(dot(2), dot(3));
                            let dot = i32x4_add(I::widen(first, one), I::widen(last, one));
                            let tail = tail::<I>(tokens[t]);
                            let half_sums = vector(tokens[t].add(32 * I::VALUE_BYTES + 16));
                            let a_sum =
                                if half == 0 { lane::<0>(half_sums) } else { lane::<1>(half_sums) };
                            let sum = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                            sums[quad][t] = f32x4_add(sum, f32x4_mul(min, a_sum));
                        });
                    });
                });
                w = w.add(2 * QUADS * SIX_BYTES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}
