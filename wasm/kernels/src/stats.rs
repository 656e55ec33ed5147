//! Exact statistics of a row of logits: maximum, log Z, entropy and variance of the surprisal, the
//! mass of given tokens, and the most likely ids.
//!
//! With d = z - max over the row: Z = sum e^d, A = sum d e^d, B = sum d^2 e^d give
//! H = log Z - A / Z and V = B / Z - (A / Z)^2. A second pass over 200 KB that lie in the cache costs
//! less than shifting the sums at every new maximum.

use crate::math;
use core::arch::wasm32::*;

#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Stats {
    pub max: f64,
    pub log_z: f64,
    pub entropy: f64,
    pub varentropy: f64,
    pub end_probability: f64,
}

/// Vectors whose terms are summed in f32 before they join the f64 totals.
const RUN: usize = 64;

/// Statistics of `logits`; the best `ids.len()` tokens go to `ids` and `best`, best first, ties by id.
/// A NaN or +Infinity, or nothing but -Infinity, leaves `log_z` not finite.
pub fn statistics(logits: &[f32], end_tokens: &[u32], ids: &mut [u32], best: &mut [f32]) -> Stats {
    let max = largest(logits);
    let [z, a, b] = totals(logits, max, 1.0);
    top(logits, ids, best);

    let log_z = max as f64 + z.ln();
    let (entropy, varentropy) = uncertainty(z, a, b);
    let end = end_tokens.iter().map(|&id| (logits[id as usize] as f64 - log_z).exp()).sum();
    Stats { max: max as f64, log_z, entropy, varentropy, end_probability: end }
}

/// Entropy and varentropy of softmax(logits / temperature), for a temperature above 0.
pub fn tempered(logits: &[f32], temperature: f32) -> (f64, f64) {
    let [z, a, b] = totals(logits, largest(logits), 1.0 / temperature);
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

fn uncertainty(z: f64, a: f64, b: f64) -> (f64, f64) {
    let mean = a / z;
    ((z.ln() - mean).max(0.0), (b / z - mean * mean).max(0.0))
}

/// Z, A and B of the logits times `scale`.
fn totals(logits: &[f32], max: f32, scale: f32) -> [f64; 3] {
    let mut totals = [0.0f64; 3];
    let vectors = logits.len() / 4;
    for first in (0..vectors).step_by(RUN) {
        let mut sums = [f32x4_splat(0.0); 3];
        for i in first..(first + RUN).min(vectors) {
            add_terms(unsafe { math::load(logits, 4 * i) }, max, scale, &mut sums);
        }
        add_totals(&mut totals, &sums);
    }
    for &z in &logits[4 * vectors..] {
        let mut sums = [f32x4_splat(0.0); 3];
        let minus = f32::NEG_INFINITY;
        add_terms(f32x4(z, minus, minus, minus), max, scale, &mut sums);
        add_totals(&mut totals, &sums);
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

fn add_totals(totals: &mut [f64; 3], sums: &[v128; 3]) {
    for (total, &sum) in totals.iter_mut().zip(sums) {
        let (low, high) = (f64x2_promote_low_f32x4(sum), i32x4_shuffle::<2, 3, 2, 3>(sum, sum));
        let sum = f64x2_add(low, f64x2_promote_low_f32x4(high));
        *total += f64x2_extract_lane::<0>(sum) + f64x2_extract_lane::<1>(sum);
    }
}

/// A candidate is better with a higher logit, then with a lower id.
pub fn better(a: (f32, u32), b: (f32, u32)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)
}

/// The best candidates by a heap whose root is the worst of them; most logits fail its threshold.
fn top(logits: &[f32], ids: &mut [u32], best: &mut [f32]) {
    let k = ids.len();
    let mut heap: Vec<(f32, u32)> = Vec::with_capacity(k);
    let mut id = 0;
    while id < logits.len() {
        if heap.len() == k && id + 4 <= logits.len() {
            let above = f32x4_gt(unsafe { math::load(logits, id) }, f32x4_splat(heap[0].0));
            if !v128_any_true(above) {
                id += 4;
                continue;
            }
        }
        let end = if heap.len() == k { (id + 4).min(logits.len()) } else { id + 1 };
        for id in id..end {
            offer(&mut heap, k, (logits[id], id as u32));
        }
        id = end;
    }
    heap.sort_unstable_by(|&a, &b| {
        if better(a, b) { core::cmp::Ordering::Less } else { core::cmp::Ordering::Greater }
    });
    heap.resize(k, (f32::NEG_INFINITY, 0));
    for (i, (logit, id)) in heap.into_iter().enumerate() {
        (best[i], ids[i]) = (logit, id);
    }
}

fn offer(heap: &mut Vec<(f32, u32)>, k: usize, candidate: (f32, u32)) {
    if candidate.0.is_nan() {
        return;
    }
    if heap.len() < k {
        heap.push(candidate);
        let mut i = heap.len() - 1;
        while i > 0 && better(heap[(i - 1) / 2], heap[i]) {
            heap.swap(i, (i - 1) / 2);
            i = (i - 1) / 2;
        }
    } else if k > 0 && better(candidate, heap[0]) {
        heap[0] = candidate;
        let mut i = 0;
        loop {
            let worst = [2 * i + 1, 2 * i + 2].into_iter().filter(|&child| child < k).fold(
                i,
                |worst, child| if better(heap[worst], heap[child]) { child } else { worst },
            );
            if worst == i {
                break;
            }
            heap.swap(i, worst);
            i = worst;
        }
    }
}
