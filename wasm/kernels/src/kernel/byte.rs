//! Weights of 8 bits (Q8_0) against int8 activations.

use super::{
    Kernel, Sums, Tile, accumulate, half_constants, halves, lane, nibbles, opaque, repeat, splat,
    tail, unroll, vector,
};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{BYTE_BLOCK, LINE};
use core::arch::wasm32::*;

pub struct Byte;

/// A byte is 16 times its high nibble plus its low one: two dots of 4-bit values, both exact. That
/// the bytes are biased by 128 is taken back in the integers.
impl Kernel for Byte {
    const SUMS: usize = 2;

    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const Q: usize>(
        w: *const u8,
        first: usize,
        a: Tile,
    ) -> Sums<T, Q> {
        let mask = opaque(u8x16_splat(15));
        let steps = opaque(8);
        let (one, sixteen) = (opaque(I::factor(1)), opaque(I::factor(16)));
        let constants = half_constants().map(opaque);
        let mut sums = [[f32x4_splat(0.0); T]; Q];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let mut low = [[i32x4_splat(0); T]; Q];
                let mut high = [[i32x4_splat(0); T]; Q];
                repeat!(v < 8, steps, {
                    unroll!(t < T, {
                        let x = splat::<I, T>(block, v, t);
                        unroll!(quad < Q, {
                            let at = w.add(LINE * v + 16 * (first + quad));
                            let (l, h) = nibbles(vector(at), mask);
                            low[quad][t] = I::narrow_add(low[quad][t], I::narrow_dot(l, x));
                            high[quad][t] = I::narrow_add(high[quad][t], I::narrow_dot(h, x));
                        });
                    });
                });
                unroll!(quad < Q, {
                    let scales = w.add(8 * LINE + 16 * ((first + quad) / 2));
                    let scale = halves(vector(scales), (first + quad) % 2, constants);
                    unroll!(t < T, {
                        let tail = tail::<I, T>(block, t);
                        let low = I::widen(low[quad][t], one);
                        let dot = i32x4_add(low, I::widen(high[quad][t], sixteen));
                        let dot = i32x4_sub(dot, lane::<2>(tail));
                        sums[quad][t] = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                    });
                });
                w = w.add(BYTE_BLOCK);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}
