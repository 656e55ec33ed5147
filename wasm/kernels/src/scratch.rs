//! Everything a step writes besides the KV cache, reserved once for the largest step.

use crate::activations::{BLOCK, Precision, TILE, block_bytes};
use crate::buffer::Buffer;
use crate::isa::Isa;
use crate::matrix::BAND_ROWS;
use crate::memory::reserve;
use crate::stats::{RUN, Run, Stats};
use crate::weights::Shape;

pub struct Scratch {
    /// The residual stream, [tokens][hidden].
    pub hidden: Buffer,
    pub normed: Buffer,
    /// (cos, sin) of each rotated pair, [tokens][rope dimensions].
    pub angles: Buffer,
    /// [tokens][heads * head size]
    pub query: Buffer,
    /// [tokens][KV heads * head size]
    pub key: Buffer,
    pub value: Buffer,
    /// [tokens][heads * head size]
    pub attended: Buffer,
    /// Of each token and KV head: blocks read, and the share of the attention left out; summed over
    /// layers, [tokens][2 * KV heads].
    pub attention: Buffer,
    /// [tokens][feed forward]
    pub gate: Buffer,
    pub up: Buffer,
    /// The quantised input of the next product.
    pub packed: *mut u8,
    /// That of the down projection, which is written while `packed` is still being read.
    pub activated: *mut u8,
    /// [output rows][vocabulary, up to whole bands]
    pub logits: Buffer,
    /// [output rows][runs of the vocabulary] of `Run`
    runs: Buffer,
    /// [output rows] of `Stats`
    pub stats: Buffer,
    /// [output rows][top k], u32 in f32's place
    pub top_ids: Buffer,
    pub top_logits: Buffer,
}

unsafe impl Send for Scratch {}
unsafe impl Sync for Scratch {}

impl Scratch {
    /// Reserves room; `None` when memory is exhausted.
    pub fn new<I: Isa>(
        shape: &Shape,
        rope_dimensions: usize,
        precision: Precision,
        tokens: usize,
        output_rows: usize,
        top_k: usize,
    ) -> Option<Scratch> {
        // A product writes whole bands.
        let padded = |rows: usize| rows.next_multiple_of(BAND_ROWS);
        let query = shape.heads * shape.head_size;
        let kv = shape.kv_heads * shape.head_size;
        let packed = |columns: usize| {
            let rows = tokens * precision.rows();
            let blocks = rows.next_multiple_of(TILE) * columns.div_ceil(BLOCK);
            let data = reserve(blocks * block_bytes::<I>());
            (!data.is_null()).then_some(data)
        };
        Some(Scratch {
            hidden: Buffer::new(tokens, shape.hidden)?,
            normed: Buffer::new(tokens, shape.hidden)?,
            angles: Buffer::new(tokens, rope_dimensions)?,
            query: Buffer::new(tokens, query)?,
            key: Buffer::new(tokens, kv)?,
            value: Buffer::new(tokens, kv)?,
            attended: Buffer::new(tokens, query)?,
            attention: Buffer::new(tokens, 2 * shape.kv_heads)?,
            gate: Buffer::new(tokens, shape.feed_forward)?,
            up: Buffer::new(tokens, shape.feed_forward)?,
            packed: packed(shape.hidden.max(query))?,
            activated: packed(shape.feed_forward)?,
            logits: Buffer::new(output_rows, padded(shape.vocabulary))?,
            runs: Buffer::new(output_rows, shape.vocabulary.div_ceil(RUN) * size_of::<Run>() / 4)?,
            stats: Buffer::new(output_rows, size_of::<Stats>() / 4)?,
            top_ids: Buffer::new(output_rows, top_k)?,
            top_logits: Buffer::new(output_rows, top_k)?,
        })
    }

    /// # Safety
    /// No other thread may touch the same runs meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn runs_of(&self, row: usize) -> &mut [Run] {
        unsafe { self.runs.row(row).align_to_mut().1 }
    }
}
