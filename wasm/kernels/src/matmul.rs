//! Matrix times activations. One kernel a packing, for tiles of 1 to `TILE` rows. Whatever the tile,
//! an output element is summed in one order with the same operations: block by block,
//! `sum += (dot * scale) * activation scale`, then `sum += min * activation sum`. So results do not
//! depend on what else is in the batch. Where a token has two rows, their sums are added at the end.
//!
//! A tile of one row meets all four quads of a band at once, a larger one as many as leave eight sums:
//! unpacked weights serve all its rows, unpacked activations serve the quads, and the sums stay in
//! registers.

use crate::activations::{Activations, Precision};
use crate::isa::Isa;
use crate::kernel::{Byte, Float, Kernel, Nibble, Six, Tile, unroll};
use crate::matrix::Scales::{Half, Single};
use crate::matrix::{BAND_ROWS, Matrix, Packing, QUADS};
use core::arch::wasm32::*;
use core::ops::Range;

/// Where results go: element (token, row) at `data[token * stride + row]`.
#[derive(Clone, Copy)]
pub struct Output {
    pub data: *mut f32,
    pub stride: usize,
    /// Add to what is there instead of replacing it.
    pub add: bool,
}

unsafe impl Send for Output {}
unsafe impl Sync for Output {}

/// Computes the rows of `bands` for every token.
pub unsafe fn matmul<I: Isa>(m: &Matrix, a: &Activations, out: Output, bands: Range<usize>) {
    unsafe {
        match m.packing {
            Packing::Nibble(Half) => run::<I, Nibble<false, true>>(m, a, out, bands),
            Packing::Nibble(Single) => run::<I, Nibble<false, false>>(m, a, out, bands),
            Packing::Five(Half) => run::<I, Nibble<true, true>>(m, a, out, bands),
            Packing::Five(Single) => run::<I, Nibble<true, false>>(m, a, out, bands),
            Packing::Six => run::<I, Six>(m, a, out, bands),
            Packing::Byte => run::<I, Byte>(m, a, out, bands),
            // It reads the floats, of which a token has one row.
            Packing::Float => {
                let a = Activations { precision: Precision::Single, ..*a };
                run::<I, Float>(m, &a, out, bands)
            }
        }
    }
}

unsafe fn run<I: Isa, K: Kernel>(m: &Matrix, a: &Activations, out: Output, bands: Range<usize>) {
    for band in bands {
        let w = m.band(band);
        for index in 0..a.tiles() {
            let first = a.tokens_of(index..index + 1).start;
            unsafe {
                let floats = a.floats.add(first * a.columns);
                let packed = a.tile::<I>(index);
                let tile = Tile { packed, floats, columns: a.columns, format: m.format };
                let data = out.data.add(first * out.stride + BAND_ROWS * band);
                let out = Output { data, ..out };
                let pairs = a.precision == Precision::Double;
                // As many quads at once as leave at most eight sums of integers.
                match (a.width(index), K::SUMS) {
                    (1, _) => multiply_tile::<I, K, 1, 4>(w, tile, out, false),
                    (2, 1) => multiply_tile::<I, K, 2, 4>(w, tile, out, pairs),
                    (2, _) => multiply_tile::<I, K, 2, 2>(w, tile, out, pairs),
                    (3, 1) => multiply_tile::<I, K, 3, 2>(w, tile, out, false),
                    (3, _) => multiply_tile::<I, K, 3, 1>(w, tile, out, false),
                    (_, 1) => multiply_tile::<I, K, 4, 2>(w, tile, out, pairs),
                    _ => multiply_tile::<I, K, 4, 1>(w, tile, out, pairs),
                }
            }
        }
    }
}

/// One tile against a band, `Q` quads at a time. A function of its own for each width: engines allocate
/// registers better in small functions. With `pairs`, two rows are one token's.
#[inline(never)]
unsafe fn multiply_tile<I: Isa, K: Kernel, const T: usize, const Q: usize>(
    w: *const u8,
    tile: Tile,
    out: Output,
    pairs: bool,
) {
    for first in (0..QUADS).step_by(Q) {
        unsafe {
            let sums = K::sums::<I, T, Q>(w, first, tile);
            let store = |token: usize, quad: usize, sum: v128| {
                let at = out.data.add(token * out.stride + 4 * (first + quad)).cast::<v128>();
                v128_store(at, if out.add { f32x4_add(v128_load(at), sum) } else { sum });
            };
            unroll!(t < T, {
                unroll!(quad < Q, {
                    if !pairs {
                        store(t, quad, sums[quad][t]);
                    } else if t % 2 == 1 {
                        store(t / 2, quad, f32x4_add(sums[quad][t - 1], sums[quad][t]));
                    }
                })
            });
        }
    }
}
