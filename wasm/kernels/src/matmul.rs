//! Matrix times activations. One kernel a packing, for tiles of 1 to `TILE` tokens and one or two
//! bands of four rows. Whatever the tile, an output element is summed in one order with the same
//! operations: block by block, `sum += (dot * scale) * activation scale`, then
//! `sum += min * activation sum`. So results do not depend on what else is in the batch.

use crate::activations::{Activations, TILE, block_bytes};
use crate::formats::Format;
use crate::isa::Isa;
use crate::matrix::{BYTE_BYTES, Matrix, NIBBLE_BYTES, Packing, WIDE_BYTES};
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

type Sums<const T: usize, const B: usize> = [[v128; T]; B];

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
    /// The sums of `B` bands for the `T` tokens of a tile. `w` is the first band, `a` the tile.
    unsafe fn sums<I: Isa, const T: usize, const B: usize>(
        m: &Matrix,
        w: *const u8,
        a: Tile,
    ) -> Sums<T, B>;
}

/// A tile of activations, packed and as floats.
#[derive(Clone, Copy)]
struct Tile {
    packed: *const u8,
    floats: *const f32,
}

unsafe fn run<I: Isa, K: Kernel>(m: &Matrix, a: &Activations, out: Output, bands: Range<usize>) {
    let mut band = bands.start;
    while band < bands.end {
        let pair = band + 2 <= bands.end;
        for index in 0..a.tiles() {
            let first = index * TILE;
            unsafe {
                let tile =
                    Tile { packed: a.tile::<I>(index), floats: a.floats.add(first * a.columns) };
                let out = Output { data: out.data.add(first * out.stride + 4 * band), ..out };
                match a.width(index) {
                    1 => tile_of::<I, K, 1>(m, band, pair, tile, out),
                    2 => tile_of::<I, K, 2>(m, band, pair, tile, out),
                    3 => tile_of::<I, K, 3>(m, band, pair, tile, out),
                    4 => tile_of::<I, K, 4>(m, band, pair, tile, out),
                    5 => tile_of::<I, K, 5>(m, band, pair, tile, out),
                    6 => tile_of::<I, K, 6>(m, band, pair, tile, out),
                    7 => tile_of::<I, K, 7>(m, band, pair, tile, out),
                    _ => tile_of::<I, K, 8>(m, band, pair, tile, out),
                }
            }
        }
        band += 2;
    }
}

/// One tile against one or two bands; wide tiles take the bands one by one to spare registers.
unsafe fn tile_of<I: Isa, K: Kernel, const T: usize>(
    m: &Matrix,
    band: usize,
    pair: bool,
    tile: Tile,
    out: Output,
) {
    unsafe {
        if pair && T <= 4 {
            store(K::sums::<I, T, 2>(m, m.band(band), tile), out);
            return;
        }
        store(K::sums::<I, T, 1>(m, m.band(band), tile), out);
        if pair {
            let out = Output { data: out.data.add(4), ..out };
            store(K::sums::<I, T, 1>(m, m.band(band + 1), tile), out);
        }
    }
}

#[inline(always)]
unsafe fn store<const T: usize, const B: usize>(sums: Sums<T, B>, out: Output) {
    for (b, sums) in sums.iter().enumerate() {
        for (t, &sum) in sums.iter().enumerate() {
            unsafe {
                let at = out.data.add(t * out.stride + 4 * b).cast::<v128>();
                v128_store(at, if out.add { f32x4_add(v128_load(at), sum) } else { sum });
            }
        }
    }
}

/// `sum + (dot * scale) * activation scale + min * activation sum`, in this order.
#[inline(always)]
fn accumulate(sum: v128, dot: v128, scale: v128, a_scale: v128) -> v128 {
    f32x4_add(sum, f32x4_mul(f32x4_mul(f32x4_convert_i32x4(dot), scale), a_scale))
}

struct Nibble;

impl Kernel for Nibble {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const B: usize>(
        m: &Matrix,
        w: *const u8,
        a: Tile,
    ) -> Sums<T, B> {
        let (stride, values) = (m.band_bytes(), 4 * I::VALUE_BYTES);
        let mut sums = [[f32x4_splat(0.0); T]; B];
        let (mut w, mut a) = (w, a.packed);
        for _ in 0..m.columns / 32 {
            unsafe {
                let mut dots = [[I::narrow_zero(); T]; B];
                for v in 0..4 {
                    let q: [v128; B] =
                        core::array::from_fn(|b| v128_load(w.add(b * stride + 16 * v).cast()));
                    let low = q.map(|q| v128_and(q, u8x16_splat(15)));
                    let high = q.map(|q| u8x16_shr(q, 4));
                    for t in 0..T {
                        let x = I::splat(a.add((v * T + t) * values));
                        let y = I::splat(a.add(((v + 4) * T + t) * values));
                        for b in 0..B {
                            dots[b][t] = I::narrow_dot(dots[b][t], low[b], x);
                            dots[b][t] = I::narrow_dot(dots[b][t], high[b], y);
                        }
                    }
                }
                let tail = a.add(8 * T * values).cast::<f32>();
                for b in 0..B {
                    let scale = v128_load(w.add(b * stride + 64).cast());
                    let min = v128_load(w.add(b * stride + 80).cast());
                    for t in 0..T {
                        let a_scale = v128_load32_splat(tail.add(t).cast());
                        let a_sum = v128_load32_splat(tail.add(T + t).cast());
                        let sum = accumulate(sums[b][t], I::widen(dots[b][t]), scale, a_scale);
                        sums[b][t] = f32x4_add(sum, f32x4_mul(min, a_sum));
                    }
                }
                w = w.add(NIBBLE_BYTES);
                a = a.add(T * block_bytes::<I>());
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
    unsafe fn sums<I: Isa, const T: usize, const B: usize>(
        m: &Matrix,
        w: *const u8,
        a: Tile,
    ) -> Sums<T, B> {
        let (stride, values) = (m.band_bytes(), 4 * I::VALUE_BYTES);
        let mut sums = [[f32x4_splat(0.0); T]; B];
        let (mut w, mut a) = (w, a.packed);
        for _ in 0..m.columns / 32 {
            unsafe {
                let mut dots = [[(I::narrow_zero(), I::narrow_zero()); T]; B];
                for v in 0..8 {
                    let q: [v128; B] =
                        core::array::from_fn(|b| v128_load(w.add(b * stride + 16 * v).cast()));
                    let low = q.map(|q| v128_and(q, u8x16_splat(15)));
                    let high = q.map(|q| u8x16_shr(q, 4));
                    for t in 0..T {
                        let x = I::splat(a.add((v * T + t) * values));
                        for b in 0..B {
                            let (l, h) = dots[b][t];
                            dots[b][t] =
                                (I::narrow_dot(l, low[b], x), I::narrow_dot(h, high[b], x));
                        }
                    }
                }
                let tail = a.add(8 * T * values).cast::<f32>();
                for b in 0..B {
                    let scale = v128_load(w.add(b * stride + 128).cast());
                    for t in 0..T {
                        let a_scale = v128_load32_splat(tail.add(t).cast());
                        let offset = v128_load32_splat(tail.add(2 * T + t).cast());
                        let (low, high) = dots[b][t];
                        let dot = i32x4_sub(I::widen_bytes(low, high), offset);
                        sums[b][t] = accumulate(sums[b][t], dot, scale, a_scale);
                    }
                }
                w = w.add(BYTE_BYTES);
                a = a.add(T * block_bytes::<I>());
            }
        }
        sums
    }
}

struct Wide;

impl Kernel for Wide {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const B: usize>(
        m: &Matrix,
        w: *const u8,
        a: Tile,
    ) -> Sums<T, B> {
        let (stride, values) = (m.band_bytes(), 4 * I::VALUE_BYTES);
        let mut sums = [[f32x4_splat(0.0); T]; B];
        let (mut w, mut a) = (w, a.packed);
        for _ in 0..m.columns / 32 {
            let tail = unsafe { a.add(8 * T * values).cast::<f32>() };
            for half in 0..2 {
                unsafe {
                    for b in 0..B {
                        let w = w.add(b * stride);
                        let q: [v128; 4] =
                            core::array::from_fn(|v| v128_load(w.add(16 * v).cast()));
                        let scale = v128_load(w.add(64).cast());
                        let min = v128_load(w.add(80).cast());
                        for t in 0..T {
                            let mut dot = i32x4_splat(0);
                            for v in 0..4 {
                                let x = I::splat(a.add(((4 * half + v) * T + t) * values));
                                dot = I::dot_unsigned(dot, q[v], x);
                            }
                            let a_scale = v128_load32_splat(tail.add(t).cast());
                            let a_sum = v128_load32_splat(tail.add((3 + half) * T + t).cast());
                            let sum = accumulate(sums[b][t], dot, scale, a_scale);
                            sums[b][t] = f32x4_add(sum, f32x4_mul(min, a_sum));
                        }
                    }
                    w = w.add(WIDE_BYTES);
                }
            }
            a = unsafe { a.add(T * block_bytes::<I>()) };
        }
        sums
    }
}

struct Float;

/// Float weights meet the activations as floats, column by column.
impl Kernel for Float {
    #[inline(always)]
    unsafe fn sums<I: Isa, const T: usize, const B: usize>(
        m: &Matrix,
        w: *const u8,
        a: Tile,
    ) -> Sums<T, B> {
        let (stride, step) = (m.band_bytes(), 4 * m.format.row_bytes(1));
        let mut sums = [[f32x4_splat(0.0); T]; B];
        for column in 0..m.columns {
            for b in 0..B {
                unsafe {
                    let w = load_floats(m.format, w.add(b * stride + column * step));
                    for t in 0..T {
                        let x = v128_load32_splat(a.floats.add(t * m.columns + column).cast());
                        sums[b][t] = f32x4_add(sums[b][t], f32x4_mul(w, x));
                    }
                }
            }
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
