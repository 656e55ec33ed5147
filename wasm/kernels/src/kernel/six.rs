//! Weights of 6 bits (Q6_K), which have a scale for each 16 columns, against int8 activations.

use super::{
    Kernel, Sums, Tile, accumulate, half_sums, lane, opaque, repeat, splat, tail, unroll, vector,
};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{LINE, Scales};
use core::arch::wasm32::*;

pub struct Six;

impl Kernel for Six {
    const SUMS: usize = 2;

    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const Q: usize>(
        w: *const u8,
        first: usize,
        a: Tile,
    ) -> Sums<T, Q> {
        let one = opaque(I::factor(1));
        let steps = opaque(4);
        let mut sums = [[f32x4_splat(0.0); T]; Q];
        let (mut w, mut block) = (unsafe { w.add(16 * first) }, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                unroll!(half < 2, {
                    // A pair sum is at most 2 * 63 * 127: two of them fit 16 bits.
                    let mut dots = [[[i32x4_splat(0); 2]; T]; Q];
                    repeat!(v < 4, steps, {
                        unroll!(t < T, {
                            let x = splat::<I, T>(block, 4 * half + v, t);
                            unroll!(quad < Q, {
                                let q = vector(w.add(LINE * v + 16 * quad));
                                let dot = &mut dots[quad][t][v / 2];
                                *dot = I::narrow_add(*dot, I::narrow_dot(q, x));
                            });
                        });
                    });
                    unroll!(quad < Q, {
                        let at = w.add(4 * LINE + 16 * quad);
                        let (scale, min) = (vector(at), vector(at.add(LINE)));
                        unroll!(t < T, {
                            let [first, last] = dots[quad][t];
                            let dot = i32x4_add(I::widen(first, one), I::widen(last, one));
                            let tail = tail::<I, T>(block, t);
                            let half_sums = half_sums::<I, T>(block, t);
                            let a_sum =
                                if half == 0 { lane::<0>(half_sums) } else { lane::<1>(half_sums) };
                            let sum = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                            sums[quad][t] = f32x4_add(sum, f32x4_mul(min, a_sum));
                        });
                    });
                    w = w.add(4 * LINE + Scales::Single.bytes());
                });
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}
