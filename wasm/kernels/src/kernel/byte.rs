//! Weights of 8 bits (Q8_0) against int8 activations.

use super::{
    Kernel, Sums, Tile, accumulate, half_constants, halves, lane, nibbles, opaque, repeat, splat,
    tail, unroll, vector,
};
use crate::activations::block_bytes;
use crate::isa::Isa;
use crate::matrix::{BYTE_BYTES, BYTE_SCALES, QUADS};
use core::arch::wasm32::*;

pub struct Byte;

/// A byte is 16 times its high nibble plus its low one: two dots of 4-bit values, both exact. That
/// the bytes are biased by 128 is taken back in the integers.
impl Kernel for Byte {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let mask = opaque(u8x16_splat(15));
        let steps = opaque(8);
        let (one, sixteen) = (opaque(I::factor(1)), opaque(I::factor(16)));
        let constants = half_constants().map(opaque);
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                let scales = halves(vector(w.add(QUADS * BYTE_BYTES)), constants);
                unroll!(quad < QUADS, {
                    let mut low = [i32x4_splat(0); T];
                    let mut high = [i32x4_splat(0); T];
                    repeat!(v < 8, T, steps, {
                        let (l, h) = nibbles(vector(w.add(quad * BYTE_BYTES + 16 * v)), mask);
                        unroll!(t < T, {
                            let x = splat::<I, T>(tokens[t], v);
                            low[t] = I::narrow_add(low[t], I::narrow_dot(l, x));
                            high[t] = I::narrow_add(high[t], I::narrow_dot(h, x));
                        });
                    });
                    let scale = scales[quad];
                    unroll!(t < T, {
                        let tail = tail::<I>(tokens[t]);
                        let dot = i32x4_add(I::widen(low[t], one), I::widen(high[t], sixteen));
                        let dot = i32x4_sub(dot, lane::<2>(tail));
                        sums[quad][t] = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                    });
                });
                w = w.add(QUADS * BYTE_BYTES + BYTE_SCALES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}
