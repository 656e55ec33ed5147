//! Scratch for the rows of a batch, shared by threads that each write rows or columns of their own.

use crate::memory::reserve_for;

/// [rows][width] f32.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub data: *mut f32,
    pub width: usize,
}

unsafe impl Send for Buffer {}
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Reserves room; `None` when memory is exhausted.
    pub fn new(rows: usize, width: usize) -> Option<Buffer> {
        let data = reserve_for::<f32>(rows.checked_mul(width)?);
        (!data.is_null()).then_some(Buffer { data, width })
    }

    /// # Safety
    /// No other thread may touch this row's elements meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn row(&self, index: usize) -> &mut [f32] {
        unsafe { core::slice::from_raw_parts_mut(self.data.add(index * self.width), self.width) }
    }
}
