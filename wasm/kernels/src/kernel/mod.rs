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

use crate::formats::Format;
use crate::isa::Isa;
use crate::matrix::QUADS;
use core::arch::wasm32::*;

/// Sums of four rows each, for each quad and token.
pub type Sums<const T: usize> = [[v128; T]; QUADS];

pub trait Kernel {
    /// The sums of a band, which starts at `w`, for the `T` tokens of a tile.
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T>;
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

/// Repeats a block for each index below a constant bound: as straight code for a tile of one token, else
/// as a loop of `$count` steps, which is to be that bound, made opaque. Of straight code, LLVM moves all
/// terms of one sum next to one another, so that of several tokens what they are made of waits in
/// memory; from step to step of a loop the sums stay in registers.
macro_rules! repeat {
    ($index:ident < $bound:literal, $tokens:expr, $count:expr, $body:block) => {
        if $tokens == 1 {
            unroll!($index < $bound, $body)
        } else {
            for $index in 0..$count $body
        }
    };
}
pub(crate) use repeat;

/// `sum + (dot * scale) * activation scale + min * activation sum`, in this order.
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
    [i32x4_splat(0x8fff_ffff_u32 as i32), i32x4_splat(239 << 23)]
}

/// The first and the last four of eight finite halves as f32: as `f16_to_f32`, but the sign comes along
/// as bits 28 to 31, of which one is kept.
#[inline(always)]
pub fn halves(h: v128, [mask, power]: [v128; 2]) -> [v128; 2] {
    [i32x4_extend_low_i16x8(h), i32x4_extend_high_i16x8(h)]
        .map(|h| f32x4_mul(v128_and(i32x4_shl(h, 13), mask), power))
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

/// Four columns of a token's block, the `index`th four, for each lane. A tile of one token takes them out
/// of packs: straight code with a load for four of them is faster there, of larger tiles a load each.
#[inline(always)]
pub unsafe fn splat<I: Isa, const T: usize>(block: *const u8, index: usize) -> I::Splat {
    unsafe {
        if T == 1 {
            let pack = I::load_pack(block.add(index / 4 * 16 * I::VALUE_BYTES));
            I::splats(pack)[index % 4]
        } else {
            I::load_splat(block.add(4 * index * I::VALUE_BYTES))
        }
    }
}

/// A token's scale, sum and offset of a block.
#[inline(always)]
pub unsafe fn tail<I: Isa>(block: *const u8) -> v128 {
    unsafe { vector(block.add(32 * I::VALUE_BYTES)) }
}
