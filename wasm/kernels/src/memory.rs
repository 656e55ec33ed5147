//! Memory that lives as long as the instance: weights, KV cache, scratch. It is taken straight from
//! `memory.grow`, so it is zero, and a page that nobody touches costs no resident memory.

use core::arch::wasm32::memory_grow;
use core::ptr::null_mut;
use std::sync::Mutex;

const PAGE: usize = 65536;
const ALIGNMENT: usize = 64;
/// Least growth at a time, so that many small matrices share one growth.
const LEAST_PAGES: usize = 32;

/// The unused rest of the latest growth: first byte and byte after the last.
static REST: Mutex<(usize, usize)> = Mutex::new((0, 0));

/// Reserves `bytes` zeroed bytes, aligned to 64; null when the memory cannot grow.
pub fn reserve(bytes: usize) -> *mut u8 {
    let mut rest = REST.lock().unwrap();
    let size = bytes.next_multiple_of(ALIGNMENT);
    if rest.1 - rest.0 < size {
        let pages = size.div_ceil(PAGE).max(LEAST_PAGES);
        let first = memory_grow(0, pages);
        // The last page of the address space stays unused: the end must fit a pointer.
        if first == usize::MAX || first + pages >= PAGE {
            return null_mut();
        }
        let start = first * PAGE;
        if start != rest.1 {
            rest.0 = start;
        }
        rest.1 = start + pages * PAGE;
    }
    let start = rest.0;
    rest.0 += size;
    start as *mut u8
}

/// Room for `count` values of `T`.
pub fn reserve_for<T>(count: usize) -> *mut T {
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => reserve(bytes).cast(),
        _ => null_mut(),
    }
}
