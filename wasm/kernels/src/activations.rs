//! Activations as the kernels read them: int8 with a scale for each 32, packed so that one tile of
//! rows lies together. A token has one row, or two: the second holds what rounding left of the first,
//! rounded itself, so that the sum of both products is that of activations of 16 bits. Tile i holds rows
//! `TILE * i ..`, its width n is what is left, at most `TILE`. For each block of 32 columns:
//!
//! ```text
//! values  [8][n][4]  int8 (int16 for plain SIMD128): eight fours of columns, each of all rows
//! tails   [n]        of each row:
//!   scale   f32        max |x| / 127
//!   sum     f32        scale * sum of the values
//!   offset  i32        128 * sum of the values
//!   unused
//!   halves  [2] f32    scale * sum of the first and of the last 16 values
//!   unused  [2]
//! ```
//!
//! Four fours are a pack: one load brings four columns of four rows, or 16 columns of one.

use crate::isa::Isa;
use crate::math::{peak, sum_lanes};
use core::arch::wasm32::*;
use core::ops::Range;

/// Most rows of a tile: with two quads of weights, eight sums in registers.
pub const TILE: usize = 4;
/// Columns that share a scale.
pub const BLOCK: usize = 32;
/// Magnitudes below this are taken as zero: their reciprocal would not be finite.
pub const TINY: f32 = 1e-30;

/// Bytes of what comes after the values, of one row.
pub const TAIL: usize = 32;

/// Bytes of one row's block of 32 columns.
pub const fn block_bytes<I: Isa>() -> usize {
    BLOCK * I::VALUE_BYTES + TAIL
}

/// How a token's activations are rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// To 8 bits.
    Single,
    /// To 16 bits: a second row for what is left of the first.
    Double,
}

impl Precision {
    /// Rows of a token; a divisor of `TILE`.
    pub const fn rows(self) -> usize {
        match self {
            Precision::Single => 1,
            Precision::Double => 2,
        }
    }
}

/// Where the quantised activations of a batch lie, and the floats that they came from.
#[derive(Clone, Copy)]
pub struct Activations {
    pub tokens: usize,
    pub columns: usize,
    pub precision: Precision,
    /// [tokens][columns]
    pub floats: *const f32,
    pub packed: *mut u8,
}

unsafe impl Send for Activations {}
unsafe impl Sync for Activations {}

impl Activations {
    pub fn rows(&self) -> usize {
        self.tokens * self.precision.rows()
    }

    pub fn tiles(&self) -> usize {
        self.rows().div_ceil(TILE)
    }

    /// Rows of tile `tile`.
    pub fn width(&self, tile: usize) -> usize {
        (self.rows() - tile * TILE).min(TILE)
    }

    /// Tokens of these tiles.
    pub fn tokens_of(&self, tiles: Range<usize>) -> Range<usize> {
        let first = |tile: usize| tile * TILE / self.precision.rows();
        first(tiles.start)..first(tiles.end).min(self.tokens)
    }

    pub fn tile<I: Isa>(&self, tile: usize) -> *mut u8 {
        unsafe { self.packed.add(tile * TILE * self.blocks() * block_bytes::<I>()) }
    }

    /// Blocks of a row.
    pub fn blocks(&self) -> usize {
        self.columns / BLOCK
    }

    /// Quantises these blocks of the tokens of these tiles.
    pub unsafe fn quantize<I: Isa>(&self, tiles: Range<usize>, blocks: Range<usize>) {
        for tile in tiles {
            let width = self.width(tile);
            for (i, token) in self.tokens_of(tile..tile + 1).enumerate() {
                let x = unsafe { self.floats.add(token * self.columns) };
                let first_row = i * self.precision.rows();
                for block in blocks.clone() {
                    unsafe {
                        let to = self.tile::<I>(tile).add(block * width * block_bytes::<I>());
                        let x: *const v128 = x.add(BLOCK * block).cast();
                        let mut left = core::array::from_fn(|i| v128_load(x.add(i)));
                        for row in first_row..first_row + self.precision.rows() {
                            left = quantize_block::<I>(left, to, row, width);
                        }
                    }
                }
            }
        }
    }
}

/// Quantises 32 columns of row `row` of the `width` rows whose block is at `to`. Returns what rounding
/// left of them.
#[inline(always)]
unsafe fn quantize_block<I: Isa>(x: [v128; 8], to: *mut u8, row: usize, width: usize) -> [v128; 8] {
    let four = 4 * I::VALUE_BYTES;
    unsafe {
        let peak = peak(x);
        let (scale, inverse) = if peak < TINY { (0.0, 0.0) } else { (peak / 127.0, 127.0 / peak) };
        let rounded = x.map(|x| f32x4_nearest(f32x4_mul(x, f32x4_splat(inverse))));
        let q = rounded.map(|x| i32x4_trunc_sat_f32x4(x));
        for (i, q) in [[q[0], q[1], q[2], q[3]], [q[4], q[5], q[6], q[7]]].into_iter().enumerate() {
            let mut pack = [0u64; 4];
            let pack = pack.as_mut_ptr().cast::<u8>();
            I::store_pack(pack, q);
            for j in 0..4 {
                let to = to.add(((4 * i + j) * width + row) * four);
                to.copy_from_nonoverlapping(pack.add(j * four), four);
            }
        }

        let low = sum_lanes(i32x4_add(i32x4_add(q[0], q[1]), i32x4_add(q[2], q[3])));
        let high = sum_lanes(i32x4_add(i32x4_add(q[4], q[5]), i32x4_add(q[6], q[7])));
        let tail = to.add(width * BLOCK * I::VALUE_BYTES + row * TAIL).cast::<v128>();
        let offset = f32::from_bits((128 * (low + high)) as u32);
        v128_store(tail, f32x4(scale, scale * (low + high) as f32, offset, 0.0));
        v128_store(tail.add(1), f32x4(scale * low as f32, scale * high as f32, 0.0, 0.0));
        core::array::from_fn(|i| f32x4_sub(x[i], f32x4_mul(rounded[i], f32x4_splat(scale))))
    }
}
