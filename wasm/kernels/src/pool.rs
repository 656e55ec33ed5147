//! Splitting work over threads. Every unit of work is computed the same way whoever takes it, so the
//! number of threads never shows in a result.

use core::ops::Range;

pub struct Pool {
    threads: usize,
}

impl Pool {
    pub fn new(threads: usize) -> Pool {
        Pool { threads }
    }

    /// Runs `work` over `0..units`, cut into one range a thread.
    pub fn run(&self, units: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        for thread in 0..self.threads {
            let range = thread * units / self.threads..(thread + 1) * units / self.threads;
            if !range.is_empty() {
                work(range);
            }
        }
    }
}
