//! The most likely tokens of a row of logits.

use crate::math;
use crate::stats::{RUN, Run};
use core::arch::wasm32::*;
use core::ops::Range;

/// A candidate is better with a higher logit, then with a lower id.
pub fn better(a: (f32, u32), b: (f32, u32)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)
}

/// The best candidates by a heap whose root is the worst of them. Runs with the largest maxima come
/// first, so that the others, which hold nothing better than that root, are not looked at.
pub fn top(runs: &[Run], logits: &[f32], ids: &mut [u32], best: &mut [f32]) {
    let k = ids.len();
    let mut heap: Vec<(f32, u32)> = Vec::with_capacity(k);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_unstable_by(|&a, &b| runs[b].max.total_cmp(&runs[a].max));
    for run in order {
        if heap.len() == k && heap.first().is_none_or(|worst| runs[run].max < worst.0) {
            break;
        }
        offer_run(&mut heap, k, logits, RUN * run..((RUN * (run + 1)).min(logits.len())));
    }
    heap.sort_unstable_by(|&a, &b| {
        if better(a, b) { core::cmp::Ordering::Less } else { core::cmp::Ordering::Greater }
    });
    heap.resize(k, (f32::NEG_INFINITY, 0));
    for (i, (logit, id)) in heap.into_iter().enumerate() {
        (best[i], ids[i]) = (logit, id);
    }
}

/// Offers the logits of `range`. Four at a time, most fail the threshold of a full heap.
fn offer_run(heap: &mut Vec<(f32, u32)>, k: usize, logits: &[f32], range: Range<usize>) {
    for first in range.clone().step_by(4) {
        let end = (first + 4).min(range.end);
        if heap.len() == k && end == first + 4 {
            let below = f32x4_lt(unsafe { math::load(logits, first) }, f32x4_splat(heap[0].0));
            if i32x4_all_true(below) {
                continue;
            }
        }
        for id in first..end {
            offer(heap, k, (logits[id], id as u32));
        }
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
