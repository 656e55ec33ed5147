//! What the kernels need of an instruction set: integer dots whose four lanes are four rows (or
//! tokens, or dimensions), each lane summing four products. Everything built on it is exact in the
//! integers and orders its floating point alike, so every instruction set gives the same bits.

use core::arch::wasm32::v128;

pub trait Isa: Sync {
    /// Bytes of one activation in memory.
    const VALUE_BYTES: usize;

    /// Sixteen consecutive activations in registers.
    type Pack: Copy;
    /// Four consecutive activations, repeated for each lane.
    type Splat: Copy;

    /// Stores the four bytes that belong to `lane` of the vector at `at`.
    unsafe fn store_lane(at: *mut u8, lane: usize, bytes: [u8; 4]);

    /// The four bytes that belong to `lane` of the vector at `at`.
    unsafe fn load_lane(at: *const u8, lane: usize) -> [u8; 4];

    /// Stores one of the four bytes that belong to `lane`, and touches no other: threads may be
    /// storing those.
    unsafe fn store_byte(at: *mut u8, lane: usize, index: usize, byte: u8);

    /// Stores 16 activations, given as four vectors of 32-bit integers in -127 ..= 127.
    unsafe fn store_pack(at: *mut u8, values: [v128; 4]);

    unsafe fn load_pack(at: *const u8) -> Self::Pack;

    /// The four fours of a pack.
    fn splats(pack: Self::Pack) -> [Self::Splat; 4];

    /// `w . a` for unsigned `w` in 0 ..= 15, not yet widened: sums of eight fit.
    fn narrow_dot(w: v128, a: Self::Splat) -> v128;

    fn narrow_add(a: v128, b: v128) -> v128;

    /// The lanes' sums as 32-bit integers, times `factor`: `Self::factor(f)` where f is at most 16.
    fn widen(sum: v128, factor: v128) -> v128;

    fn factor(factor: i16) -> v128;

    /// What `key_dot` adds for each unit of a key's sum, to be taken off.
    const KEY_BIAS: i32;
    /// Four consecutive query values, repeated for each lane.
    type Query: Copy;
    /// Sums of products of keys and queries, not yet widened: eight additions fit.
    type KeySum: Copy;

    /// Stores 16 query values in 32 bytes, given as four vectors of 32-bit integers.
    unsafe fn store_query(at: *mut u8, values: [v128; 4]);

    /// The four fours of 16 query values.
    unsafe fn load_query(at: *const u8) -> [Self::Query; 4];

    fn key_zero() -> Self::KeySum;

    /// Adds `k . (q + KEY_BIAS)`, exact for all int8 values.
    fn key_dot(sum: Self::KeySum, k: v128, q: Self::Query) -> Self::KeySum;

    fn key_widen(sum: Self::KeySum) -> v128;

    /// Adds `w . a` to 32-bit sums, for signed `w` and unsigned `a` in 0 ..= 127.
    fn dot_signed(sum: v128, w: v128, a: Self::Splat) -> v128;
}
