//! Draws a token from a row, in time linear in the vocabulary. Every filter keeps the first ranks, and
//! the draw takes the rank at which the running mass passes a random share. Logits fall into narrow
//! buckets by their distance from the best, so that only a bucket where one of these ends is sorted.

use crate::math;
use crate::stats::largest;
use crate::top_k::better;
use core::arch::wasm32::*;

/// The stages, in this order; each may be off.
pub struct Draw {
    /// The most likely ones; 0 keeps all.
    pub top_k: usize,
    /// The fewest that hold this share of the mass at temperature 1; 1 keeps all.
    pub top_p: f64,
    /// Those at least this much as likely as the best, at temperature 1; 0 keeps all.
    pub min_p: f64,
    /// 0 takes the best.
    pub temperature: f64,
    /// Random, in [0, 1).
    pub u: f64,
}

/// The token drawn; `None` where no token is possible.
pub fn draw(logits: &[f32], draw: &Draw) -> Option<u32> {
    let max = largest(logits);
    if max == f32::NEG_INFINITY {
        return None;
    }
    if draw.temperature == 0.0 {
        return logits.iter().position(|&logit| logit == max).map(|id| id as u32);
    }
    // Finite, lest 0 times the inverse be no number.
    let inverse = ((1.0 / draw.temperature) as f32).min(f32::MAX);
    let filters = draw.top_k > 0 || draw.top_p < 1.0 || draw.min_p > 0.0;
    let first = if filters { 1.0 } else { inverse };
    let mut ranking = Ranking::new(logits, max, first, BUCKETS);
    let kept = ranking.filter(draw);
    if first != inverse {
        ranking = Ranking::new(logits, max, inverse, kept.bucket + 1);
    }
    let share = draw.u * ranking.mass(kept);
    let found = ranking.reach(kept, |sum| sum > share).map(|(_, id)| id);
    // Rounding may leave the sum of all just short of the share.
    found.or_else(|| ranking.last_possible(kept))
}

const BUCKETS: usize = 1024;
/// Of logits that differ by 1. The last bucket holds all that are 32 below the best, or more.
const BUCKETS_A_NAT: f32 = 32.0;

/// The first ranks of all: those in the buckets before `bucket`, and the first `within` in that one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    bucket: usize,
    within: usize,
}

/// Tokens by logit descending, ties by id, as far as somebody asks, with weights e^((z - max) / T).
struct Ranking<'a> {
    logits: &'a [f32],
    max: f32,
    /// 1 / T
    inverse: f32,
    counts: [usize; BUCKETS],
    masses: [f64; BUCKETS],
}

impl Ranking<'_> {
    /// Of the tokens in the first `end` buckets at least.
    fn new(logits: &[f32], max: f32, inverse: f32, end: usize) -> Ranking<'_> {
        let (counts, masses) = ([0; BUCKETS], [0.0; BUCKETS]);
        let mut ranking = Ranking { logits, max, inverse, counts, masses };
        // A bucket more, for rounding.
        let depth = if end < BUCKETS { (end + 1) as f32 / BUCKETS_A_NAT } else { f32::INFINITY };
        let floor = f32x4_splat(max - depth);
        each_four(logits, |_, z, lanes| {
            if !v128_any_true(f32x4_ge(z, floor)) {
                return;
            }
            let (buckets, weights) = (ranking.buckets(z), ranking.weights(z));
            // The remainder spares a check of bounds.
            let mut add = |bucket: i32, weight: f32| {
                ranking.counts[bucket as usize % BUCKETS] += 1;
                ranking.masses[bucket as usize % BUCKETS] += weight as f64;
            };
            add(i32x4_extract_lane::<0>(buckets), f32x4_extract_lane::<0>(weights));
            if lanes == 4 {
                add(i32x4_extract_lane::<1>(buckets), f32x4_extract_lane::<1>(weights));
                add(i32x4_extract_lane::<2>(buckets), f32x4_extract_lane::<2>(weights));
                add(i32x4_extract_lane::<3>(buckets), f32x4_extract_lane::<3>(weights));
            }
        });
        ranking
    }

    /// What the filters keep, of a ranking at temperature 1.
    fn filter(&self, draw: &Draw) -> Prefix {
        let all = self.logits.len();
        let mut kept = self.first(if draw.top_k == 0 { all } else { draw.top_k });
        if draw.top_p < 1.0 {
            let wanted = draw.top_p * self.mass(kept);
            kept = self.reach(kept, |sum| sum >= wanted).map_or(kept, |(prefix, _)| prefix);
        }
        if draw.min_p > 0.0 {
            let threshold = self.max as f64 + draw.min_p.ln();
            let likely = self.logits.iter().filter(|&&logit| logit as f64 >= threshold).count();
            kept = kept.min(self.first(likely.max(1)));
        }
        kept
    }

    #[inline(always)]
    fn buckets(&self, z: v128) -> v128 {
        let below = f32x4_mul(f32x4_sub(f32x4_splat(self.max), z), f32x4_splat(BUCKETS_A_NAT));
        i32x4_trunc_sat_f32x4(f32x4_min(below, f32x4_splat((BUCKETS - 1) as f32)))
    }

    #[inline(always)]
    fn weights(&self, z: v128) -> v128 {
        math::exp(f32x4_mul(f32x4_sub(z, f32x4_splat(self.max)), f32x4_splat(self.inverse)))
    }

    fn weight(&self, logit: f32) -> f64 {
        f32x4_extract_lane::<0>(self.weights(f32x4_splat(logit))) as f64
    }

    /// The prefix of `count` ranks, or of all.
    fn first(&self, count: usize) -> Prefix {
        let mut left = count;
        for (bucket, &held) in self.counts.iter().enumerate() {
            if left <= held {
                return Prefix { bucket, within: left };
            }
            left -= held;
        }
        Prefix { bucket: BUCKETS - 1, within: self.counts[BUCKETS - 1] }
    }

    fn mass(&self, Prefix { bucket, within }: Prefix) -> f64 {
        let before: f64 = self.masses[..bucket].iter().sum();
        if within == self.counts[bucket] {
            return before + self.masses[bucket];
        }
        self.members(bucket).iter().take(within).fold(before, |sum, &(z, _)| sum + self.weight(z))
    }

    /// The first rank within `end` at which the running mass passes: the prefix up to it, and its id.
    fn reach(&self, end: Prefix, passes: impl Fn(f64) -> bool) -> Option<(Prefix, u32)> {
        let mut sum = 0.0;
        for bucket in 0..=end.bucket {
            if bucket < end.bucket && !passes(sum + self.masses[bucket]) {
                sum += self.masses[bucket];
                continue;
            }
            let most = if bucket < end.bucket { usize::MAX } else { end.within };
            for (i, (logit, id)) in self.members(bucket).into_iter().take(most).enumerate() {
                sum += self.weight(logit);
                if passes(sum) {
                    return Some((Prefix { bucket, within: i + 1 }, id));
                }
            }
        }
        None
    }

    /// The last within `end` that weighs anything.
    fn last_possible(&self, end: Prefix) -> Option<u32> {
        (0..=end.bucket).rev().find_map(|bucket| {
            let most = if bucket < end.bucket { usize::MAX } else { end.within };
            let possible = |&(logit, _): &(f32, u32)| self.weight(logit) > 0.0;
            self.members(bucket).into_iter().take(most).filter(possible).last().map(|(_, id)| id)
        })
    }

    /// The tokens of a bucket in rank order.
    fn members(&self, bucket: usize) -> Vec<(f32, u32)> {
        let mut members = Vec::with_capacity(self.counts[bucket]);
        each_four(self.logits, |first, z, lanes| {
            let own = i32x4_eq(self.buckets(z), i32x4_splat(bucket as i32));
            let mut inside = i32x4_bitmask(own) & ((1 << lanes) - 1);
            while inside != 0 {
                let id = first + inside.trailing_zeros() as usize;
                members.push((self.logits[id], id as u32));
                inside &= inside - 1;
            }
        });
        members.sort_unstable_by(|&a, &b| better(b, a).cmp(&better(a, b)));
        members
    }
}

/// Calls `take` with the index of the first of four logits and the four; the last few come one by one,
/// in the first lane.
#[inline(always)]
fn each_four(logits: &[f32], mut take: impl FnMut(usize, v128, usize)) {
    let whole = logits.len() / 4 * 4;
    for i in (0..whole).step_by(4) {
        take(i, unsafe { math::load(logits, i) }, 4);
    }
    for (i, &logit) in logits.iter().enumerate().skip(whole) {
        take(i, f32x4_splat(logit), 1);
    }
}
