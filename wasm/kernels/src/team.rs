//! A fixed team of threads over shared memory. The leader publishes a job in ranges and works on it;
//! whoever is awake helps. The leader waits for the ranges that were taken, never for a thread that
//! took none: on a busy machine a late thread then costs nothing. Waiting is a brief spin, then a
//! futex.

use core::arch::wasm32::{memory_atomic_notify, memory_atomic_wait32};
use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use wasm_bindgen::prelude::wasm_bindgen;

/// Looks at a flag before sleeping: more than lies between two jobs of a step, for waking a thread
/// takes as long as many a job. Far more would take the core from others on a busy machine.
const SPINS: usize = 30_000;
/// Nanoseconds of a sleep, after which the leader looks for failures.
const SLEEP: i64 = 100_000_000;
/// Sleeps after which a worker that holds a range counts as dead: ten seconds.
const PATIENCE: usize = 100;

struct Job {
    work: *const (dyn Fn(Range<usize>) + Sync),
    cut: Cut,
}

/// How units of work are cut into ranges: for each thread a large one, for weights stream best in one
/// piece, and from what is left two small ones, which even out how fast the threads are.
struct Cut {
    units: usize,
    threads: usize,
    large: usize,
    small: usize,
}

impl Cut {
    fn new(units: usize, threads: usize) -> Cut {
        let large = (units * 3 / 4 / threads).max(1);
        let small = units.saturating_sub(large * threads).div_ceil(2 * threads).max(1);
        Cut { units, threads, large, small }
    }

    fn start(&self, index: usize) -> usize {
        let (large, small) = (index.min(self.threads), index.saturating_sub(self.threads));
        (large * self.large + small * self.small).min(self.units)
    }

    fn ranges(&self) -> usize {
        let rest = self.units.saturating_sub(self.threads * self.large);
        (self.threads + rest.div_ceil(self.small)).min(self.units)
    }

    fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }
}

/// Which ranges of which job are left to take: 32 bits of generation, 16 of the next range, 16 of
/// how many there are. In one word, so that a late thread cannot take a range of a job that is over.
#[derive(Clone, Copy)]
struct Ticket(u64);

impl Ticket {
    fn new(generation: u32, ranges: usize) -> Ticket {
        Ticket((generation as u64) << 32 | ranges as u64)
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn next(self) -> Option<usize> {
        let (next, ranges) = ((self.0 >> 16) as u16, self.0 as u16);
        (next < ranges).then_some(next as usize)
    }

    fn after(self) -> Ticket {
        Ticket(self.0 + (1 << 16))
    }
}

/// Alone in its lines of cache: who waits for one word takes none of the others from those at work.
#[repr(align(128))]
struct Apart<T>(T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

pub struct Team {
    threads: usize,
    /// Of the job that is published; a change is the sign to start.
    generation: Apart<AtomicU32>,
    /// Valid while ranges of its generation are unfinished.
    job: Apart<UnsafeCell<Option<Job>>>,
    ticket: Apart<AtomicU64>,
    /// Ranges that are not done.
    left: Apart<AtomicU32>,
    /// Threads that wait, or are about to, and have to be notified.
    sleepers: AtomicU32,
    stopped: AtomicBool,
    failed: AtomicBool,
}

unsafe impl Sync for Team {}

impl Team {
    pub fn new(threads: usize) -> Team {
        Team {
            threads,
            generation: Apart(AtomicU32::new(0)),
            job: Apart(UnsafeCell::new(None)),
            ticket: Apart(AtomicU64::new(0)),
            left: Apart(AtomicU32::new(0)),
            sleepers: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The leader's part. Traps when a worker has died at work.
    pub fn run(&self, units: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        let cut = Cut::new(units, self.threads);
        let ranges = cut.ranges();
        // The job outlives no call: `run` returns only once every range is done.
        let work: *const (dyn Fn(Range<usize>) + Sync + 'static) =
            unsafe { core::mem::transmute(work as *const (dyn Fn(Range<usize>) + Sync)) };
        unsafe { *self.job.get() = Some(Job { work, cut }) };
        self.left.store(ranges as u32, Relaxed);
        let generation = self.generation.load(Relaxed).wrapping_add(1);
        self.ticket.store(Ticket::new(generation, ranges).0, Release);
        self.signal();
        self.take_ranges(generation);
        self.wait_for_ranges();
    }

    fn signal(&self) {
        self.generation.fetch_add(1, SeqCst);
        self.notify(&self.generation);
    }

    fn take_ranges(&self, generation: u32) {
        let mut done = 0;
        while let Some(index) = self.take(generation) {
            // Taken and not reported as done, so the job is still this one.
            let job = unsafe { (*self.job.get()).as_ref().expect("a job was published") };
            unsafe { (*job.work)(job.cut.range(index)) };
            done += 1;
        }
        if done > 0 && self.left.fetch_sub(done, SeqCst) == done {
            self.notify(&self.left);
        }
    }

    fn take(&self, generation: u32) -> Option<usize> {
        let mut ticket = Ticket(self.ticket.load(Acquire));
        while ticket.generation() == generation {
            let index = ticket.next()?;
            let after = ticket.after();
            match self.ticket.compare_exchange_weak(ticket.0, after.0, AcqRel, Acquire) {
                Ok(_) => return Some(index),
                Err(now) => ticket = Ticket(now),
            }
        }
        None
    }

    fn wait_for_ranges(&self) {
        if (0..SPINS).any(|_| self.left.load(Acquire) == 0) {
            return;
        }
        for _ in 0..PATIENCE {
            let left = self.left.load(Acquire);
            if left == 0 {
                return;
            }
            assert!(!self.failed.load(Acquire), "a worker failed");
            self.sleep(&self.left, left, SLEEP);
        }
        panic!("a worker does not answer");
    }

    /// Waits until `value` is no longer `seen`, or for `nanoseconds` unless these are negative.
    fn sleep(&self, value: &AtomicU32, seen: u32, nanoseconds: i64) {
        self.sleepers.fetch_add(1, SeqCst);
        unsafe { memory_atomic_wait32(value.as_ptr().cast(), seen as i32, nanoseconds) };
        self.sleepers.fetch_sub(1, SeqCst);
    }

    /// After a change of `value`. A notification costs as much as a small range, so none goes out
    /// while nobody sleeps: who is about to has counted itself before it compares the value.
    fn notify(&self, value: &AtomicU32) {
        if self.sleepers.load(SeqCst) > 0 {
            unsafe { memory_atomic_notify(value.as_ptr().cast(), u32::MAX) };
        }
    }

    /// A worker's life, until the team is stopped.
    fn serve(&self) {
        let mut seen = 0;
        while !self.stopped.load(Acquire) {
            let changed = || self.generation.load(Acquire) != seen;
            if !(0..SPINS).any(|_| changed()) {
                self.sleep(&self.generation, seen, -1);
            }
            seen = self.generation.load(Acquire);
            self.take_ranges(seen);
        }
    }
}

/// Lends the calling thread to a team until the team is stopped.
///
/// # Safety
/// `team` is of `Core::team`, in the same memory.
#[wasm_bindgen]
pub unsafe fn serve_team(team: *const Team) {
    unsafe { (*team).serve() };
}

/// Tells the leader that a worker trapped.
///
/// # Safety
/// As for `serve_team`.
#[wasm_bindgen]
pub unsafe fn fail_team(team: *const Team) {
    unsafe {
        (*team).failed.store(true, SeqCst);
        (*team).notify(&(*team).left);
    }
}

/// Sends the workers home.
///
/// # Safety
/// As for `serve_team`.
#[wasm_bindgen]
pub unsafe fn stop_team(team: *const Team) {
    unsafe {
        (*team).stopped.store(true, Release);
        (*team).signal();
    }
}
