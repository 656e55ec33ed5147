//! What the kernels need of an instruction set: integer dots whose four lanes are four rows (or
//! tokens, or dimensions), each lane summing four products. Everything built on it is exact in the
//! integers and orders its floating point alike, so every instruction set gives the same bits.

use core::arch::wasm32::v128;

pub trait Isa: Sync {
    /// Bytes of one activation in memory.
    const VALUE_BYTES: usize;

    /// Four consecutive activations, repeated for each lane.
    type Splat: Copy;
    /// Sums of products of 4-bit values, not yet widened.
    type Narrow: Copy;

    /// Stores the four bytes that belong to `lane` of the vector at `at`.
    unsafe fn store_lane(at: *mut u8, lane: usize, bytes: [u8; 4]);

    /// The four bytes that belong to `lane` of the vector at `at`.
    unsafe fn load_lane(at: *const u8, lane: usize) -> [u8; 4];

    /// Stores an activation in -127 ..= 127.
    unsafe fn store_value(at: *mut u8, value: i8);

    /// Stores 16 activations, given as four vectors of 32-bit integers in -127 ..= 127.
    unsafe fn store_values(at: *mut u8, values: [v128; 4]);

    unsafe fn splat(at: *const u8) -> Self::Splat;

    fn narrow_zero() -> Self::Narrow;

    /// Adds `w . a` for unsigned `w` in 0 ..= 15. Holds for eight additions.
    fn narrow_dot(sum: Self::Narrow, w: v128, a: Self::Splat) -> Self::Narrow;

    /// The lanes' sums as 32-bit integers.
    fn widen(sum: Self::Narrow) -> v128;

    /// `high * 16 + low`, as 32-bit integers.
    fn widen_bytes(low: Self::Narrow, high: Self::Narrow) -> v128;

    /// Adds `w . a` to 32-bit sums, for unsigned `w` in 0 ..= 127 and signed `a`.
    fn dot_unsigned(sum: v128, w: v128, a: Self::Splat) -> v128;

    /// Adds `w . a` to 32-bit sums, for signed `w` and unsigned `a` in 0 ..= 127.
    fn dot_signed(sum: v128, w: v128, a: Self::Splat) -> v128;
}
