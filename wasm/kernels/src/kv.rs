//! A KV block as a whole: its records, and its codes where there is a sketch.

use crate::isa::Isa;
use crate::model::Model;

impl<I: Isa> Model<I> {
    /// Bytes of a block's codes; 0 without a sketch.
    pub fn sketch_block_bytes(&self) -> usize {
        self.sketch.as_ref().map_or(0, |sketch| sketch.shape.block_bytes())
    }

    pub fn copy_block(&self, from: usize, to: usize) {
        self.cache.copy_block(from, to);
        if let Some(sketch) = &self.sketch {
            sketch.copy_block(from, to);
        }
    }

    /// Gathers a block's records and codes.
    pub unsafe fn read_block(&self, block: usize, out: *mut u8) {
        unsafe { self.cache.read_block(block, out) };
        if let Some(sketch) = &self.sketch {
            unsafe { sketch.read_block(block, out.add(self.cache.block_bytes())) };
        }
    }

    /// Puts back what `read_block` gave.
    pub unsafe fn write_block(&self, block: usize, from: *const u8) {
        unsafe { self.cache.write_block(block, from) };
        if let Some(sketch) = &self.sketch {
            unsafe { sketch.write_block(block, from.add(self.cache.block_bytes())) };
        }
    }
}
