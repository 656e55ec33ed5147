//! Elementwise functions on vectors of four. Nothing here depends on how many vectors there are.

use core::arch::wasm32::*;

/// exp(x) within about one unit in the last place; 0 below -87.3, NaN stays NaN.
/// Range reduction by ln 2 in two parts, then the Cephes `expf` polynomial.
///
/// `pmin` and `pmax` say nothing of NaN here: with relaxed SIMD the compiler makes them relaxed.
#[inline(always)]
pub fn exp(x: v128) -> v128 {
    let clamped = f32x4_pmin(f32x4_pmax(x, f32x4_splat(-87.3)), f32x4_splat(88.0));
    let n = f32x4_nearest(f32x4_mul(clamped, f32x4_splat(core::f32::consts::LOG2_E)));
    let r = f32x4_sub(clamped, f32x4_mul(n, f32x4_splat(0.693_359_375)));
    let r = f32x4_add(r, f32x4_mul(n, f32x4_splat(2.121_944_4e-4)));
    let mut p = f32x4_splat(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        p = f32x4_add(f32x4_mul(p, r), f32x4_splat(c));
    }
    let y = f32x4_add(f32x4_add(f32x4_mul(p, f32x4_mul(r, r)), r), f32x4_splat(1.0));
    let power = i32x4_shl(i32x4_add(i32x4_trunc_sat_f32x4(n), i32x4_splat(127)), 23);
    let y = v128_andnot(f32x4_mul(y, power), f32x4_lt(x, f32x4_splat(-87.3)));
    v128_or(y, f32x4_ne(x, x))
}

/// The largest magnitude; NaN where there is one. Without their sign, floats order as integers.
#[inline(always)]
pub fn peak(x: impl IntoIterator<Item = v128>) -> f32 {
    let magnitude = |x| v128_and(x, i32x4_splat(i32::MAX));
    let peak = x.into_iter().fold(i32x4_splat(0), |peak, x| i32x4_max(peak, magnitude(x)));
    let peak = i32x4_max(peak, i32x4_shuffle::<2, 3, 0, 1>(peak, peak));
    f32x4_extract_lane::<0>(i32x4_max(peak, i32x4_shuffle::<1, 0, 3, 2>(peak, peak)))
}

/// The largest lane; NaN where there is one.
#[inline(always)]
pub fn max_lane(v: v128) -> f32 {
    let v = f32x4_max(v, i32x4_shuffle::<2, 3, 0, 1>(v, v));
    f32x4_extract_lane::<0>(f32x4_max(v, i32x4_shuffle::<1, 0, 3, 2>(v, v)))
}

/// Sum of the lanes as integers.
#[inline(always)]
pub fn sum_lanes(v: v128) -> i32 {
    let v = i32x4_add(v, i32x4_shuffle::<2, 3, 0, 1>(v, v));
    i32x4_extract_lane::<0>(i32x4_add(v, i32x4_shuffle::<1, 0, 3, 2>(v, v)))
}

/// The sum of the four lanes, always in this order.
#[inline(always)]
pub fn sum(v: v128) -> f32 {
    (f32x4_extract_lane::<0>(v) + f32x4_extract_lane::<1>(v))
        + (f32x4_extract_lane::<2>(v) + f32x4_extract_lane::<3>(v))
}

#[inline(always)]
pub unsafe fn load(x: &[f32], i: usize) -> v128 {
    unsafe { v128_load(x.as_ptr().add(i).cast()) }
}

#[inline(always)]
pub unsafe fn save(x: &mut [f32], i: usize, v: v128) {
    unsafe { v128_store(x.as_mut_ptr().add(i).cast(), v) }
}

/// RMSNorm (arXiv 1910.07467): `out = x / sqrt(mean(x^2) + epsilon) * weight`. Lengths divide by 4.
pub fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    debug_assert!(x.len() == weight.len() && x.len() == out.len());
    unsafe {
        let mut squares = f32x4_splat(0.0);
        for i in (0..x.len()).step_by(4) {
            squares = f32x4_add(squares, f32x4_mul(load(x, i), load(x, i)));
        }
        let scale = f32x4_splat(1.0 / (sum(squares) / x.len() as f32 + epsilon).sqrt());
        for i in (0..x.len()).step_by(4) {
            save(out, i, f32x4_mul(f32x4_mul(load(x, i), scale), load(weight, i)));
        }
    }
}

/// SwiGLU (arXiv 2002.05202): `gate = gate * sigmoid(gate) * up`. Lengths divide by 4.
pub fn swiglu(gate: &mut [f32], up: &[f32]) {
    let one = f32x4_splat(1.0);
    for i in (0..gate.len()).step_by(4) {
        unsafe {
            let g = load(gate, i);
            let silu = f32x4_div(g, f32x4_add(one, exp(f32x4_neg(g))));
            save(gate, i, f32x4_mul(silu, load(up, i)));
        }
    }
}

/// Walsh-Hadamard transform in place, not normalised, of each `size` elements, a power of two that
/// divides by 4. It turns query and key alike, which leaves their products as they are (times `size`)
/// and spreads outliers over all dimensions, so that few bits hold a key well (arXiv 2404.00456).
pub fn hadamard(x: &mut [f32], size: usize) {
    let minus = |lanes| v128_and(lanes, i32x4_splat(i32::MIN));
    let (odd, upper) = (minus(i32x4(0, -1, 0, -1)), minus(i32x4(0, 0, -1, -1)));
    for x in x.chunks_exact_mut(size) {
        // Within each four: lane i gets its partner, and where it is the second, less itself.
        for i in (0..size).step_by(4) {
            unsafe {
                let v = load(x, i);
                let v = f32x4_add(i32x4_shuffle::<1, 0, 3, 2>(v, v), v128_xor(v, odd));
                let v = f32x4_add(i32x4_shuffle::<2, 3, 0, 1>(v, v), v128_xor(v, upper));
                save(x, i, v);
            }
        }
        let mut half = 4;
        while half < size {
            for first in (0..size).step_by(2 * half) {
                for i in (first..first + half).step_by(4) {
                    unsafe {
                        let (a, b) = (load(x, i), load(x, i + half));
                        save(x, i, f32x4_add(a, b));
                        save(x, i + half, f32x4_sub(a, b));
                    }
                }
            }
            half *= 2;
        }
    }
}
