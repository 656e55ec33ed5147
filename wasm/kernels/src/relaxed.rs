//! Relaxed SIMD: `relaxed_dot_i8x16_i7x16` multiplies 16 bytes at once and is exact as long as its
//! second operand stays in 0 ..= 127.

use crate::isa::Isa;
use core::arch::wasm32::*;

pub struct Relaxed;

impl Isa for Relaxed {
    const VALUE_BYTES: usize = 1;
    type Pack = v128;
    type Splat = v128;

    #[inline(always)]
    unsafe fn store_lane(at: *mut u8, lane: usize, bytes: [u8; 4]) {
        unsafe { *at.cast::<[u8; 4]>().add(lane) = bytes };
    }

    #[inline(always)]
    unsafe fn load_lane(at: *const u8, lane: usize) -> [u8; 4] {
        unsafe { *at.cast::<[u8; 4]>().add(lane) }
    }

    #[inline(always)]
    unsafe fn store_byte(at: *mut u8, lane: usize, index: usize, byte: u8) {
        unsafe { *at.add(4 * lane + index) = byte };
    }

    #[inline(always)]
    unsafe fn store_pack(at: *mut u8, [a, b, c, d]: [v128; 4]) {
        let bytes = i8x16_narrow_i16x8(i16x8_narrow_i32x4(a, b), i16x8_narrow_i32x4(c, d));
        unsafe { v128_store(at.cast(), bytes) };
    }

    #[inline(always)]
    unsafe fn load_pack(at: *const u8) -> v128 {
        unsafe { v128_load(at.cast()) }
    }

    #[inline(always)]
    fn splats(pack: v128) -> [v128; 4] {
        [
            i32x4_shuffle::<0, 0, 0, 0>(pack, pack),
            i32x4_shuffle::<1, 1, 1, 1>(pack, pack),
            i32x4_shuffle::<2, 2, 2, 2>(pack, pack),
            i32x4_shuffle::<3, 3, 3, 3>(pack, pack),
        ]
    }

    /// A pair sum is at most 2 * 15 * 127 = 3810, so eight of them fit 16 bits. One addition fewer
    /// than summing in 32 bits wherever the 32-bit dot is not one instruction.
    #[inline(always)]
    fn narrow_dot(w: v128, a: v128) -> v128 {
        i16x8_relaxed_dot_i8x16_i7x16(a, w)
    }

    #[inline(always)]
    fn narrow_add(a: v128, b: v128) -> v128 {
        i16x8_add(a, b)
    }

    #[inline(always)]
    fn widen(sum: v128, factor: v128) -> v128 {
        i32x4_dot_i16x8(sum, factor)
    }

    #[inline(always)]
    fn factor(factor: i16) -> v128 {
        i16x8_splat(factor)
    }

    const KEY_BIAS: i32 = 128;
    /// High and low nibbles.
    type Query = (v128, v128);
    type KeySum = (v128, v128);

    /// As `q + 128`, a byte without sign whose nibbles are the 7-bit operands of two dots.
    #[inline(always)]
    unsafe fn store_query(at: *mut u8, values: [v128; 4]) {
        let biased = values.map(|q| i32x4_add(q, i32x4_splat(128)));
        unsafe {
            Self::store_pack(at, biased.map(|q| u32x4_shr(q, 4)));
            Self::store_pack(at.add(16), biased.map(|q| v128_and(q, i32x4_splat(15))));
        }
    }

    #[inline(always)]
    unsafe fn load_query(at: *const u8) -> [(v128, v128); 4] {
        let high = Self::splats(unsafe { Self::load_pack(at) });
        let low = Self::splats(unsafe { Self::load_pack(at.add(16)) });
        core::array::from_fn(|i| (high[i], low[i]))
    }

    #[inline(always)]
    fn key_zero() -> (v128, v128) {
        (i16x8_splat(0), i16x8_splat(0))
    }

    /// A pair sum is at most 2 * 15 * 128 = 3840, so eight of them fit 16 bits.
    #[inline(always)]
    fn key_dot((high, low): (v128, v128), k: v128, q: (v128, v128)) -> (v128, v128) {
        (
            i16x8_add(high, i16x8_relaxed_dot_i8x16_i7x16(k, q.0)),
            i16x8_add(low, i16x8_relaxed_dot_i8x16_i7x16(k, q.1)),
        )
    }

    #[inline(always)]
    fn key_widen((high, low): (v128, v128)) -> v128 {
        i32x4_add(i32x4_dot_i16x8(high, i16x8_splat(16)), i32x4_dot_i16x8(low, i16x8_splat(1)))
    }

    #[inline(always)]
    fn dot_signed(sum: v128, w: v128, a: v128) -> v128 {
        i32x4_relaxed_dot_i8x16_i7x16_add(w, a, sum)
    }
}
