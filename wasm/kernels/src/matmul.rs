//! Matrix times activations. One kernel a packing, for tiles of 1 to `TILE` tokens. Whatever the tile,
//! an output element is summed in one order with the same operations: block by block,
//! `sum += (dot * scale) * activation scale`, then `sum += min * activation sum`. So results do not
//! depend on what else is in the batch.
//!
//! A tile meets both quads of a band at once: unpacked weights serve all its tokens, unpacked
//! activations serve both quads, and the sums stay in registers.

use crate::activations::{Activations, TILE, block_bytes};
use crate::formats::Format;
use crate::isa::Isa;
use crate::matrix::{BAND_ROWS, BYTE_BYTES, Matrix, NIBBLE_BYTES, Packing, QUADS, WIDE_BYTES};
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

type Sums<const T: usize> = [[v128; T]; QUADS];

/// Computes the rows of `bands` for every token.
pub unsafe fn matmul<I: Isa>(m: &Matrix, a: &Activations, out: Output, bands: Range<usize>) {
    unsafe {
        match m.packing {
            Packing::Nibble => run::<I, Nibble>(m, a, out, bands),
            Packing::Byte => run::<I, Byte>(m, a, out, bands),
            Packing::Wide => run::<I, Wide>(m, a, out, bands),
            Packing::Float => run::<I, Float>(m, a, out, bands),
        }
    }
}

trait Kernel {
    /// The sums of a band, which starts at `w`, for the `T` tokens of a tile.
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T>;
}

/// A tile of activations, packed and as floats.
#[derive(Clone, Copy)]
struct Tile {
    packed: *const u8,
    floats: *const f32,
    columns: usize,
    /// Of the weights.
    format: Format,
}

unsafe fn run<I: Isa, K: Kernel>(m: &Matrix, a: &Activations, out: Output, bands: Range<usize>) {
    for band in bands {
        let w = m.band(band);
        for index in 0..a.tiles() {
            let first = index * TILE;
            unsafe {
                let floats = a.floats.add(first * a.columns);
                let packed = a.tile::<I>(index);
                let tile = Tile { packed, floats, columns: a.columns, format: m.format };
                let data = out.data.add(first * out.stride + BAND_ROWS * band);
                let out = Output { data, ..out };
                match a.width(index) {
                    1 => multiply_tile::<I, K, 1>(w, tile, out),
                    2 => multiply_tile::<I, K, 2>(w, tile, out),
                    3 => multiply_tile::<I, K, 3>(w, tile, out),
                    _ => multiply_tile::<I, K, 4>(w, tile, out),
                }
            }
        }
    }
}

/// Repeats a block for each index below a constant bound of at most 4, as straight code: what the
/// compiler leaves as a loop keeps its sums in memory.
macro_rules! unroll {
    ($index:ident < $bound:expr, $body:block) => {
        unroll!(@ $index $bound, $body, 0 1 2 3)
    };
    (@ $index:ident $bound:expr, $body:block, $($value:literal)*) => {
        { $(if $value < $bound {
            let $index: usize = $value;
            $body
        })* }
    };
}

/// One tile against a band. A function of its own for each width: engines allocate registers better
/// in small functions.
#[inline(never)]
unsafe fn multiply_tile<I: Isa, K: Kernel, const T: usize>(w: *const u8, tile: Tile, out: Output) {
    unsafe {
        let sums = K::sums::<I, T>(w, tile);
        unroll!(t < T, {
            unroll!(quad < QUADS, {
                let at = out.data.add(t * out.stride + 4 * quad).cast::<v128>();
                let sum = sums[quad][t];
                v128_store(at, if out.add { f32x4_add(v128_load(at), sum) } else { sum });
            })
        });
    }
}

/// `sum + (dot * scale) * activation scale + min * activation sum`, in this order.
#[inline(always)]
fn accumulate(sum: v128, dot: v128, scale: v128, a_scale: v128) -> v128 {
    f32x4_add(sum, f32x4_mul(f32x4_mul(f32x4_convert_i32x4(dot), scale), a_scale))
}

/// A constant that the compiler does not see through. Engines materialise a vector constant anew at
/// each use, with three instructions; a local stays in its register.
#[inline(always)]
fn opaque(constant: v128) -> v128 {
    unsafe { core::ptr::read_volatile(&constant) }
}

/// Lane `L` in all lanes.
#[inline(always)]
fn lane<const L: usize>(v: v128) -> v128 {
    i32x4_shuffle::<L, L, L, L>(v, v)
}

/// The low and the high nibbles of 16 bytes.
#[inline(always)]
fn nibbles(q: v128, mask: v128) -> (v128, v128) {
    (v128_and(q, mask), v128_and(u16x8_shr(q, 4), mask))
}

#[inline(always)]
unsafe fn vector(at: *const u8) -> v128 {
    unsafe { v128_load(at.cast()) }
}

/// A token's 16 columns of a half block, unpacked.
#[inline(always)]
unsafe fn splats<I: Isa>(block: *const u8, half: usize) -> [I::Splat; 4] {
    I::splats(unsafe { I::load_pack(block.add(16 * half * I::VALUE_BYTES)) })
}

/// A token's scale, sum and offset of a block.
#[inline(always)]
unsafe fn tail<I: Isa>(block: *const u8) -> v128 {
    unsafe { vector(block.add(32 * I::VALUE_BYTES)) }
}

struct Nibble;

impl Kernel for Nibble {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let (mask, one) = (opaque(u8x16_splat(15)), opaque(I::factor(1)));
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                let low = tokens.map(|token| splats::<I>(token, 0));
                let high = tokens.map(|token| splats::<I>(token, 1));
                let mut dots = [[i32x4_splat(0); T]; QUADS];
                unroll!(v < 4, {
                    unroll!(quad < QUADS, {
                        let (x, y) = nibbles(vector(w.add(quad * NIBBLE_BYTES + 16 * v)), mask);
                        unroll!(t < T, {
                            let x = I::narrow_dot(x, low[t][v]);
                            let dot = I::narrow_add(x, I::narrow_dot(y, high[t][v]));
                            dots[quad][t] = I::narrow_add(dots[quad][t], dot);
                        });
                    });
                });
                unroll!(quad < QUADS, {
                    let scale = vector(w.add(quad * NIBBLE_BYTES + 64));
                    let min = vector(w.add(quad * NIBBLE_BYTES + 80));
                    unroll!(t < T, {
                        let tail = tail::<I>(tokens[t]);
                        let dot = I::widen(dots[quad][t], one);
                        let sum = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                        sums[quad][t] = f32x4_add(sum, f32x4_mul(min, lane::<1>(tail)));
                    });
                });
                w = w.add(QUADS * NIBBLE_BYTES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}

struct Byte;

/// A byte is 16 times its high nibble plus its low one: two dots of 4-bit values, both exact. That
/// the bytes are biased by 128 is taken back in the integers.
impl Kernel for Byte {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let mask = opaque(u8x16_splat(15));
        let (one, sixteen) = (opaque(I::factor(1)), opaque(I::factor(16)));
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                unroll!(quad < QUADS, {
                    let mut low = [i32x4_splat(0); T];
                    let mut high = [i32x4_splat(0); T];
                    unroll!(half < 2, {
                        let x = tokens.map(|token| splats::<I>(token, half));
                        unroll!(v < 4, {
                            let at = w.add(quad * BYTE_BYTES + 64 * half + 16 * v);
                            let (l, h) = nibbles(vector(at), mask);
                            unroll!(t < T, {
                                low[t] = I::narrow_add(low[t], I::narrow_dot(l, x[t][v]));
                                high[t] = I::narrow_add(high[t], I::narrow_dot(h, x[t][v]));
                            });
                        });
                    });
                    let scale = vector(w.add(quad * BYTE_BYTES + 128));
                    unroll!(t < T, {
                        let tail = tail::<I>(tokens[t]);
                        let dot = i32x4_add(I::widen(low[t], one), I::widen(high[t], sixteen));
                        let dot = i32x4_sub(dot, lane::<2>(tail));
                        sums[quad][t] = accumulate(sums[quad][t], dot, scale, lane::<0>(tail));
                    });
                });
                w = w.add(QUADS * BYTE_BYTES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}

struct Wide;

impl Kernel for Wide {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        let (mut w, mut block) = (w, a.packed);
        for _ in 0..a.columns / 32 {
            unsafe {
                let tokens: [*const u8; T] =
                    core::array::from_fn(|t| block.add(t * block_bytes::<I>()));
                unroll!(half < 2, {
                    let x = tokens.map(|token| splats::<I>(token, half));
                    unroll!(quad < QUADS, {
                        let w = w.add((QUADS * half + quad) * WIDE_BYTES);
                        let mut dots = [i32x4_splat(0); T];
                        unroll!(v < 4, {
                            let q = vector(w.add(16 * v));
                            unroll!(t < T, { dots[t] = I::dot_unsigned(dots[t], q, x[t][v]) });
                        });
                        let (scale, min) = (vector(w.add(64)), vector(w.add(80)));
                        unroll!(t < T, {
                            let tail = tail::<I>(tokens[t]);
                            let half_sums = vector(tokens[t].add(32 * I::VALUE_BYTES + 16));
                            let a_sum =
                                if half == 0 { lane::<0>(half_sums) } else { lane::<1>(half_sums) };
                            let sum = accumulate(sums[quad][t], dots[t], scale, lane::<0>(tail));
                            sums[quad][t] = f32x4_add(sum, f32x4_mul(min, a_sum));
                        });
                    });
                });
                w = w.add(2 * QUADS * WIDE_BYTES);
                block = block.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}

struct Float;

/// Float weights meet the activations as floats, column by column.
impl Kernel for Float {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize>(w: *const u8, a: Tile) -> Sums<T> {
        let size = a.format.row_bytes(1);
        let mut sums = [[f32x4_splat(0.0); T]; QUADS];
        for column in 0..a.columns {
            unroll!(quad < QUADS, {
                unsafe {
                    let w = load_floats(a.format, w.add((column * BAND_ROWS + 4 * quad) * size));
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
