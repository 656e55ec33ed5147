//! Exact statistics of a row of logits: maximum, log Z, entropy and variance of the surprisal, and the
//! mass of given tokens.
//!
//! With d = z - max, Z = sum e^d, A = sum d e^d and B = sum d^2 e^d give H = log Z - A / Z and
//! V = B / Z - (A / Z)^2. They are summed by runs of logits, each under a maximum of its own, so that
//! whoever computes logits sums them at once, and joined in order: for c = run's max - max,
//! Z = sum e^c Z', A = sum e^c (A' + c Z'), B = sum e^c (B' + 2 c A' + c^2 Z').

use crate::math;
use crate::top_k::top;
use core::arch::wasm32::*;

/// Logits of a run, whose terms are summed in f32.
pub const RUN: usize = 256;

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Stats {
    pub max: f64,
    pub log_z: f64,
    pub entropy: f64,
    pub varentropy: f64,
    pub end_probability: f64,
}

/// The sums of a run of logits under its own maximum. A NaN shows in `z`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Run {
    /// The largest logit; NaN counts for nothing.
    pub max: f32,
    z: f64,
    a: f64,
    b: f64,
}

impl Run {
    /// Of at most `RUN` logits, whose differences are taken times `scale`.
    pub fn of(logits: &[f32], scale: f32) -> Run {
        let max = largest(logits);
        // Under -Infinity every difference would be NaN, where all terms are 0.
        let from = if max == f32::NEG_INFINITY { 0.0 } else { max };
        let mut sums = [f32x4_splat(0.0); 3];
        let vectors = logits.len() / 4;
        for i in 0..vectors {
            add_terms(unsafe { math::load(logits, 4 * i) }, from, scale, &mut sums);
        }
        for &z in &logits[4 * vectors..] {
            let minus = f32::NEG_INFINITY;
            add_terms(f32x4(z, minus, minus, minus), from, scale, &mut sums);
        }
        let [z, a, b] = sums.map(sum_in_f64);
        Run { max, z, a, b }
    }
}

/// The runs of a row.
pub fn runs(logits: &[f32], scale: f32) -> Vec<Run> {
    logits.chunks(RUN).map(|logits| Run::of(logits, scale)).collect()
}

/// Statistics of `logits`, whose runs at scale 1 are `runs`; the best `ids.len()` tokens go to `ids` and
/// `best`, best first, ties by id. A NaN or +Infinity, or nothing but -Infinity, leaves `log_z` not
/// finite.
pub fn statistics(
    runs: &[Run],
    logits: &[f32],
    end_tokens: &[u32],
    ids: &mut [u32],
    best: &mut [f32],
) -> Stats {
    let max = largest_of(runs) as f64;
    let [z, a, b] = totals(runs, max, 1.0);
    top(runs, logits, ids, best);

    let log_z = max + z.ln();
    let (entropy, varentropy) = uncertainty(z, a, b);
    let end = end_tokens.iter().map(|&id| (logits[id as usize] as f64 - log_z).exp()).sum();
    Stats { max, log_z, entropy, varentropy, end_probability: end }
}

/// Entropy and varentropy of softmax(logits / temperature), for a temperature above 0.
pub fn tempered(logits: &[f32], temperature: f32) -> (f64, f64) {
    let scale = 1.0 / temperature;
    let runs = runs(logits, scale);
    let [z, a, b] = totals(&runs, largest_of(&runs) as f64, scale as f64);
    uncertainty(z, a, b)
}

/// The largest logit; NaN counts for nothing.
pub fn largest(logits: &[f32]) -> f32 {
    const LANES: usize = 16;
    let larger = |m: f32, &z: &f32| if m < z { z } else { m };
    let mut most = [f32x4_splat(f32::NEG_INFINITY); 4];
    let whole = logits.len() / LANES * LANES;
    for first in (0..whole).step_by(LANES) {
        for (i, most) in most.iter_mut().enumerate() {
            let z = unsafe { math::load(logits, first + 4 * i) };
            *most = v128_bitselect(z, *most, f32x4_gt(z, *most));
        }
    }
    let most: [f32; LANES] = unsafe { core::mem::transmute(most) };
    most.iter().chain(&logits[whole..]).fold(f32::NEG_INFINITY, larger)
}

fn largest_of(runs: &[Run]) -> f32 {
    runs.iter().fold(f32::NEG_INFINITY, |most, run| if most < run.max { run.max } else { most })
}

fn uncertainty(z: f64, a: f64, b: f64) -> (f64, f64) {
    let mean = a / z;
    ((z.ln() - mean).max(0.0), (b / z - mean * mean).max(0.0))
}

/// Z, A and B under `max`.
fn totals(runs: &[Run], max: f64, scale: f64) -> [f64; 3] {
    let mut totals = [0.0; 3];
    // A run of nothing but -Infinity adds nothing.
    for run in runs.iter().filter(|run| run.z != 0.0) {
        let c = (run.max as f64 - max) * scale;
        let factor = c.exp();
        totals[0] += factor * run.z;
        totals[1] += factor * (run.a + c * run.z);
        totals[2] += factor * (run.b + c * (2.0 * run.a + c * run.z));
    }
    totals
}

#[inline(always)]
fn add_terms(z: v128, max: f32, scale: f32, sums: &mut [v128; 3]) {
    let d = f32x4_mul(f32x4_sub(z, f32x4_splat(max)), f32x4_splat(scale));
    let e = math::exp(d);
    // Where e is 0, so are the products, even for -Infinity. A NaN shows in the first sum.
    let de = v128_and(f32x4_mul(d, e), f32x4_gt(e, f32x4_splat(0.0)));
    sums[0] = f32x4_add(sums[0], e);
    sums[1] = f32x4_add(sums[1], de);
    sums[2] = f32x4_add(sums[2], v128_and(f32x4_mul(d, de), f32x4_gt(e, f32x4_splat(0.0))));
}

fn sum_in_f64(sum: v128) -> f64 {
    let (low, high) = (f64x2_promote_low_f32x4(sum), i32x4_shuffle::<2, 3, 2, 3>(sum, sum));
    let sum = f64x2_add(low, f64x2_promote_low_f32x4(high));
    f64x2_extract_lane::<0>(sum) + f64x2_extract_lane::<1>(sum)
}
