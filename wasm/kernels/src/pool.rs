//! Splitting work over threads. Every unit of work is computed the same way whoever takes it, so the
//! number of threads never shows in a result.

use core::ops::Range;
use std::sync::OnceLock;

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

    /// The calling one included.
    pub fn threads(&self) -> usize {
        #[cfg(target_feature = "atomics")]
        if let Some(team) = self.team {
            return team.threads();
        }
        1
    }

    /// Runs `work` over `0..units`, cut into ranges.
    pub fn run(&self, units: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        #[cfg(target_feature = "atomics")]
        if let Some(team) = self.team.filter(|_| units > 1) {
            return team.run(units, work);
        }
        work(0..units);
    }

    /// What `make` gives for each of `0..units`, in their order.
    pub fn map<T: Send + Sync>(&self, units: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let made: Vec<OnceLock<T>> = (0..units).map(|_| OnceLock::new()).collect();
        self.run(units, &|range| {
            for unit in range {
                let _ = made[unit].set(make(unit));
            }
        });
        made.into_iter().filter_map(OnceLock::into_inner).collect()
    }

    #[cfg(target_feature = "atomics")]
    pub fn team(&self) -> *const Team {
        self.team.map_or(core::ptr::null(), |team| team)
    }
}
