//! Splitting work over threads. Every unit of work is computed the same way whoever takes it, so the
//! number of threads never shows in a result.

use core::ops::Range;

#[cfg(target_feature = "atomics")]
use crate::team::Team;

pub struct Pool {
    #[cfg(target_feature = "atomics")]
    team: Option<&'static Team>,
}

impl Pool {
    /// `threads` counts the calling one. Without shared memory it works alone.
    #[cfg_attr(not(target_feature = "atomics"), allow(unused_variables))]
    pub fn new(threads: usize) -> Pool {
        Pool {
            #[cfg(target_feature = "atomics")]
            team: (threads > 1).then(|| &*Box::leak(Box::new(Team::new(threads)))),
        }
    }

    /// Runs `work` over `0..units`, cut into ranges.
    pub fn run(&self, units: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        #[cfg(target_feature = "atomics")]
        if let Some(team) = self.team.filter(|_| units > 1) {
            return team.run(units, work);
        }
        work(0..units);
    }

    #[cfg(target_feature = "atomics")]
    pub fn team(&self) -> *const Team {
        self.team.map_or(core::ptr::null(), |team| team)
    }
}
