//! Weights of 5 and 6 bits (Q5_0, Q5_1, Q5_K, Q6_K), which have a scale for each 16 columns, against
//! int8 activations.

use super::{Kernel, Sums, Tile, accumulate, lane, splats, tail, unroll, vector};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{QUADS, WIDE_BYTES};
use core::arch::wasm32::*;

pub struct Wide;

impl Kernel for Wide {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                unroll!(half < 2, {
                    let x = tokens.map(|token| splats::<I>(token, half));
                    unroll!(quad < QUADS, {
                        let w = w.add((QUADS * half + quad) * WIDE_BYTES);
                        let mut dots = [i32x4_splat(0); T];
                        unroll!(v < 4, {
                            let q = vector(w.add(16 * v));
                            unroll!(t < T, { dots[t] = I::dot_unsigned(dots[t], q, x[t][v]) });
                        });
                        let (scale, min) = (vector(w.add(64)), vector(w.add(80)));
                        unroll!(t < T, {
                            let tail = tail::<I>(tokens[t]);
                            let half_sums = vector(tokens[t].add(32 * I::VALUE_BYTES + 16));
                            let a_sum =
                                if half == 0 { lane::<0>(half_sums) } else { lane::<1>(half_sums) };
                            let sum = accumulate(sums[quad][t], dots[t], scale, lane::<0>(tail));
                            sums[quad][t] = f32x4_add(sum, f32x4_mul(min, a_sum));
                        });
                    });
                });
                w = w.add(2 * QUADS * WIDE_BYTES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}
