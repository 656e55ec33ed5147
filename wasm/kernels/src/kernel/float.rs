//! Float weights (F32, F16, BF16) against the activations as floats.

use super::{Kernel, Sums, Tile, unroll};
use crate::formats::Format;
use crate::isa::Isa;
use crate::matrix::BAND_ROWS;
use core::arch::wasm32::*;

pub struct Float;

/// Float weights meet the activations as floats, column by column.
impl Kernel for Float {
    const SUMS: usize = 1;

    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const Q: usize>(
        w: *const u8,
        first: usize,
        a: Tile,
    ) -> Sums<T, Q> {
        let size = a.format.row_bytes(1);
        let mut sums = [[f32x4_splat(0.0); T]; Q];
        for column in 0..a.columns {
            unroll!(quad < Q, {
                unsafe {
                    let row = column * BAND_ROWS + 4 * (first + quad);
                    let w = load_floats(a.format, w.add(row * size));
                    unroll!(t < T, {
                        let x = v128_load32_splat(a.floats.add(t * a.columns + column).cast());
                        sums[quad][t] = f32x4_add(sums[quad][t], f32x4_mul(w, x));
                    });
                }
            });
        }
        sums
    }
}

/// Four rows' elements of a column as f32.
#[inline(always)]
unsafe fn load_floats(format: Format, at: *const u8) -> v128 {
    unsafe {
        match format {
            Format::F16 => {
                let half = v128_load64_zero(at.cast());
                let half = u32x4_extend_low_u16x8(half);
                let magnitude = v128_and(half, u32x4_splat(0x7fff));
                // As `f16_to_f32`; the exponent of infinities and NaN is set by hand.
                let finite = f32x4_mul(i32x4_shl(magnitude, 13), u32x4_splat(239 << 23));
                let special = u32x4_ge(magnitude, u32x4_splat(0x7c00));
                let wide = v128_or(finite, v128_and(special, u32x4_splat(0x7f80_0000)));
                v128_or(wide, i32x4_shl(v128_and(half, u32x4_splat(0x8000)), 16))
            }
            Format::Bf16 => i32x4_shl(u32x4_extend_low_u16x8(v128_load64_zero(at.cast())), 16),
            _ => v128_load(at.cast()),
        }
    }
}
