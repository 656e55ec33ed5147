//! What attention reads of the cache: one KV head's records of a sequence, in the order of the positions.

use crate::cache::BLOCK;

#[derive(Clone, Copy)]
pub struct Records<'a> {
    /// The record of physical block 0, and the bytes from one block's to the next one's.
    base: *const u8,
    stride: usize,
    /// Physical block of each 16 positions, all full but the last.
    blocks: &'a [u32],
    tokens: usize,
}

unsafe impl Send for Records<'_> {}
unsafe impl Sync for Records<'_> {}

impl<'a> Records<'a> {
    /// # Safety
    /// A record of every block lies at `base`.
    pub unsafe fn new(base: *const u8, stride: usize, blocks: &'a [u32], tokens: usize) -> Self {
        Records { base, stride, blocks, tokens }
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn tokens(&self) -> usize {
        self.tokens
    }

    pub fn iter(self) -> impl Iterator<Item = *const u8> + 'a {
        self.blocks.iter().map(move |&block| unsafe { self.base.add(block as usize * self.stride) })
    }

    /// Parts of `blocks` blocks each, but for the last.
    pub fn parts(self, blocks: usize) -> impl Iterator<Item = Records<'a>> {
        self.blocks.chunks(blocks).enumerate().map(move |(i, part)| {
            let tokens = (self.tokens - i * blocks * BLOCK).min(blocks * BLOCK);
            Records { blocks: part, tokens, ..self }
        })
    }
}
