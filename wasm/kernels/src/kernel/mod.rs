//! One kernel for each packing of weights, and what they share: a tile of tokens against a band of
//! rows. `matmul` says in which order they sum.

mod byte;
mod float;
mod nibble;
mod six;

pub use byte::Byte;
pub use float::Float;
pub use nibble::Nibble;
pub use six::Six;

use crate::activations::{BLOCK, TAIL};
use crate::formats::Format;
use crate::isa::Isa;
use core::arch::wasm32::*;

/// Sums of four rows each, for each quad and token.
pub type Sums<const T: usize, const Q: usize> = [[v128; T]; Q];

pub trait Kernel {
    /// Sums of integers that a quad and a token need: 1 or 2.
    const SUMS: usize;

    /// The sums of `Q` quads, from quad `first` on, of the band at `w`, for the `T` rows of a tile.
    unsafe fn sums<I: Isa, const T: usize, const Q: usize>(
        w: *const u8,
        first: usize,
        a: Tile,
    ) -> Sums<T, Q>;
}

/// A tile of activations, packed and as floats.
#[derive(Clone, Copy)]
pub struct Tile {
    pub packed: *const u8,
    pub floats: *const f32,
    pub columns: usize,
    /// Of the weights.
    pub format: Format,
}

/// Repeats a block for each index below a constant bound of at most 8, as straight code:
/// sums that a loop's variable chooses among would lie in memory.
macro_rules! unroll {
    ($index:ident < $bound:expr, $body:block) => {
        unroll!(@ $index $bound, $body, 0 1 2 3 4 5 6 7)
    };
    (@ $index:ident $bound:expr, $body:block, $($value:literal)*) => {
        { $(if $value < $bound {
            let $index: usize = $value;
            $body
        })* }
    };
}
pub(crate) use unroll;

/// As `unroll`, but each step may be the last: `$count` is to be the bound, made opaque. Of straight code,
/// LLVM moves all terms of one sum next to one another, and what they are made of waits in memory;
/// where code may be left, it stays as it is written.
macro_rules! repeat {
    ($index:ident < $bound:literal, $count:expr, $body:block) => {
        'steps: {
            unroll!($index < $bound, {
                if $index > 0 && $index == $count {
                    break 'steps;
                }
                $body
            })
        }
    };
}
pub(crate) use repeat;

/// `sum + (dot * scale) * activation scale`, in this order.
#[inline(always)]
pub fn accumulate(sum: v128, dot: v128, scale: v128, a_scale: v128) -> v128 {
    f32x4_add(sum, f32x4_mul(f32x4_mul(f32x4_convert_i32x4(dot), scale), a_scale))
}

/// A constant that the compiler does not see through. Engines materialise a vector constant anew at
/// each use, with three instructions; a local stays in its register.
#[inline(always)]
pub fn opaque<T: Copy>(constant: T) -> T {
    unsafe { core::ptr::read_volatile(&constant) }
}

/// Lane `L` in all lanes.
#[inline(always)]
pub fn lane<const L: usize>(v: v128) -> v128 {
    i32x4_shuffle::<L, L, L, L>(v, v)
}

/// Constants of `halves`, to be made opaque and kept.
pub fn half_constants() -> [v128; 2] {
    [i32x4_splat(0x8fff_e000_u32 as i32), i32x4_splat(239 << 23)]
}

/// The low (`which` 0) or the high (1) halves of four words as f32, all finite: as `f16_to_f32`, but the sign
/// comes along as bits 28 to 31, of which one is kept.
#[inline(always)]
pub fn halves(words: v128, which: usize, [mask, power]: [v128; 2]) -> v128 {
    let high = i32x4_shl(words, 16 * (1 - which as u32));
    f32x4_mul(v128_and(i32x4_shr(high, 3), mask), power)
}

/// The low and the high nibbles of 16 bytes.
#[inline(always)]
pub fn nibbles(q: v128, mask: v128) -> (v128, v128) {
    (v128_and(q, mask), v128_and(u16x8_shr(q, 4), mask))
}

#[inline(always)]
pub unsafe fn vector(at: *const u8) -> v128 {
    unsafe { v128_load(at.cast()) }
}

/// The `index`th four columns of token `t`, for each lane, of the block at `block`. Shuffles are cheaper
/// than loads: engines without guard pages, Deno among them, check every load's address with two
/// instructions.
#[inline(always)]
pub unsafe fn splat<I: Isa, const T: usize>(block: *const u8, index: usize, t: usize) -> I::Splat {
    let four = index * T + t;
    unsafe { I::splats(I::load_pack(block.add(four / 4 * 16 * I::VALUE_BYTES)))[four % 4] }
}

/// The scale, sum and offset of token `t`.
#[inline(always)]
pub unsafe fn tail<I: Isa, const T: usize>(block: *const u8, t: usize) -> v128 {
    unsafe { vector(block.add(T * BLOCK * I::VALUE_BYTES + t * TAIL)) }
}

/// The sums of the first and of the last 16 columns of token `t`.
#[inline(always)]
pub unsafe fn half_sums<I: Isa, const T: usize>(block: *const u8, t: usize) -> v128 {
    unsafe { vector(block.add(T * BLOCK * I::VALUE_BYTES + t * TAIL + 16)) }
}
