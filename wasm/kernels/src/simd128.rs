//! Plain SIMD128: bytes are widened to 16 bits and multiplied in pairs by `i32x4_dot_i16x8`. The two
//! halves of a vector hold the first and the second pair of each lane, activations lie as 16 bits.

use crate::isa::Isa;
use core::arch::wasm32::*;

pub struct Simd128;

impl Isa for Simd128 {
    const VALUE_BYTES: usize = 2;
    type Pack = (v128, v128);
    type Splat = (v128, v128);

    #[inline(always)]
    unsafe fn store_lane(at: *mut u8, lane: usize, [a, b, c, d]: [u8; 4]) {
        let pairs = at.cast::<[u8; 2]>();
        unsafe {
            *pairs.add(lane) = [a, b];
            *pairs.add(4 + lane) = [c, d];
        }
    }

    #[inline(always)]
    unsafe fn load_lane(at: *const u8, lane: usize) -> [u8; 4] {
        let pairs = at.cast::<[u8; 2]>();
        let ([a, b], [c, d]) = unsafe { (*pairs.add(lane), *pairs.add(4 + lane)) };
        [a, b, c, d]
    }

    #[inline(always)]
    unsafe fn store_byte(at: *mut u8, lane: usize, index: usize, byte: u8) {
        unsafe { *at.add(8 * (index / 2) + 2 * lane + index % 2) = byte };
    }

    #[inline(always)]
    unsafe fn store_pack(at: *mut u8, [a, b, c, d]: [v128; 4]) {
        unsafe {
            v128_store(at.cast(), i16x8_narrow_i32x4(a, b));
            v128_store(at.add(16).cast(), i16x8_narrow_i32x4(c, d));
        }
    }

    #[inline(always)]
    unsafe fn load_pack(at: *const u8) -> (v128, v128) {
        unsafe { (v128_load(at.cast()), v128_load(at.add(16).cast())) }
    }

    #[inline(always)]
    fn splats((a, b): (v128, v128)) -> [(v128, v128); 4] {
        [
            (i32x4_shuffle::<0, 0, 0, 0>(a, a), i32x4_shuffle::<1, 1, 1, 1>(a, a)),
            (i32x4_shuffle::<2, 2, 2, 2>(a, a), i32x4_shuffle::<3, 3, 3, 3>(a, a)),
            (i32x4_shuffle::<0, 0, 0, 0>(b, b), i32x4_shuffle::<1, 1, 1, 1>(b, b)),
            (i32x4_shuffle::<2, 2, 2, 2>(b, b), i32x4_shuffle::<3, 3, 3, 3>(b, b)),
        ]
    }

    #[inline(always)]
    fn narrow_dot(w: v128, (first, second): (v128, v128)) -> v128 {
        i32x4_add(
            i32x4_dot_i16x8(u16x8_extend_low_u8x16(w), first),
            i32x4_dot_i16x8(u16x8_extend_high_u8x16(w), second),
        )
    }

    #[inline(always)]
    fn narrow_add(a: v128, b: v128) -> v128 {
        i32x4_add(a, b)
    }

    #[inline(always)]
    fn widen(sum: v128, factor: v128) -> v128 {
        i32x4_mul(sum, factor)
    }

    #[inline(always)]
    fn factor(factor: i16) -> v128 {
        i32x4_splat(factor as i32)
    }

    const KEY_BIAS: i32 = 0;
    type Query = (v128, v128);
    type KeySum = v128;

    #[inline(always)]
    unsafe fn store_query(at: *mut u8, values: [v128; 4]) {
        unsafe { Self::store_pack(at, values) };
    }

    #[inline(always)]
    unsafe fn load_query(at: *const u8) -> [(v128, v128); 4] {
        Self::splats(unsafe { Self::load_pack(at) })
    }

    #[inline(always)]
    fn key_zero() -> v128 {
        i32x4_splat(0)
    }

    #[inline(always)]
    fn key_dot(sum: v128, k: v128, q: (v128, v128)) -> v128 {
        Self::dot_signed(sum, k, q)
    }

    #[inline(always)]
    fn key_widen(sum: v128) -> v128 {
        sum
    }

    #[inline(always)]
    fn dot_signed(sum: v128, w: v128, (first, second): (v128, v128)) -> v128 {
        let sum = i32x4_add(sum, i32x4_dot_i16x8(i16x8_extend_low_i8x16(w), first));
        i32x4_add(sum, i32x4_dot_i16x8(i16x8_extend_high_i8x16(w), second))
    }
}
