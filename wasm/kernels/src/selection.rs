//! Which blocks an attention reads, given the share of the attention that each is thought to hold.

use std::collections::BinaryHeap;

/// How blocks are chosen.
#[derive(Clone, Copy)]
pub enum Plan {
    Dense,
    /// The smallest set that holds this share, and at least so many blocks.
    Mass(f32, usize),
    /// All that hold at least this share each, and at least so many blocks.
    Threshold(f32, usize),
}

impl Plan {
    /// The plan with the host's number: 0 dense, 1 mass, 2 threshold.
    pub fn new(kind: u32, share: f32, least: usize) -> Plan {
        match kind {
            1 => Plan::Mass(share, least),
            2 => Plan::Threshold(share, least),
            _ => Plan::Dense,
        }
    }

    /// Whether a context of so many blocks is read whole.
    pub fn reads_all(self, blocks: usize) -> bool {
        match self {
            Plan::Dense => true,
            Plan::Mass(_, least) | Plan::Threshold(_, least) => blocks <= least.max(3),
        }
    }

    /// Whether a set of `count` blocks that holds `sum` still wants a block that holds `share`.
    fn wants(self, sum: f32, count: usize, share: f32) -> bool {
        match self {
            Plan::Dense => true,
            Plan::Mass(mass, least) => sum < mass || count < least,
            Plan::Threshold(threshold, least) => share >= threshold || count < least,
        }
    }
}

/// Chooses blocks by rank; the first (where attention sinks, arXiv 2309.17453) and the last two are in
/// any set. Leaves their indices, ascending, in `chosen`.
///
/// Returns the share that is left out.
pub fn choose(plan: Plan, shares: &[f32], chosen: &mut Vec<usize>) -> f32 {
    let last = shares.len() - 1;
    chosen.extend([0, last - 1, last]);
    let mut sum: f32 = chosen.iter().map(|&i| shares[i]).sum();
    // Shares are not negative, so their bits order as they do; ties go to the earlier block.
    let key = |i: usize| (shares[i].to_bits() as u64) << 32 | (!i & 0xffff_ffff) as u64;
    let mut ranked: BinaryHeap<u64> = (1..last - 1).map(key).collect();
    while let Some(key) = ranked.pop() {
        let i = !key as u32 as usize;
        if !plan.wants(sum, chosen.len(), shares[i]) {
            break;
        }
        sum += shares[i];
        chosen.push(i);
    }
    chosen.sort_unstable();
    (1.0 - sum).max(0.0)
}
