//! The paged KV cache: blocks of 16 tokens, laid out [layer][block][KV head], all reserved at once.
//! A record holds one head's 16 keys and values in one of two forms.
//!
//! `Q8`, made for integer dots, 34 bytes for 32 elements:
//! ```text
//! keys     [head/4 dimension groups][16 tokens][4 dimensions]  0 to 126, 63 is zero; rotated by
//!                                                              Walsh-Hadamard, so that 7 bits do
//! scales   [16] f32                                            of each token's key
//! values   [head/4 groups][4 token groups][4 dimensions][4 tokens]  int8
//! scales   [16] f32                                            of each token's value
//! ```
//! In keys the lanes of a vector are tokens, in values they are dimensions, so neither QK nor PV sums
//! across lanes. Every token has its own scale: a block that fills never changes what is there.
//!
//! `F32`, the reference: keys and values as [16 tokens][head] f32.

use crate::activations::{TINY, max_lane};
use crate::isa::Isa;
use crate::math;
use crate::memory::reserve;
use core::arch::wasm32::*;
use core::ptr::copy_nonoverlapping;

/// Tokens in a block.
pub const BLOCK: usize = 16;
/// Keys are stored with this added.
pub const KEY_BIAS: i32 = 63;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KvType {
    Q8,
    F32,
}

pub struct Cache {
    pub kind: KvType,
    pub blocks: usize,
    pub layers: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    data: *mut u8,
}

unsafe impl Send for Cache {}
unsafe impl Sync for Cache {}

impl Cache {
    /// Reserves all blocks; `None` when memory is exhausted.
    pub fn new(
        kind: KvType,
        blocks: usize,
        layers: usize,
        kv_heads: usize,
        head_size: usize,
    ) -> Option<Cache> {
        let mut cache =
            Cache { kind, blocks, layers, kv_heads, head_size, data: core::ptr::null_mut() };
        let bytes = layers.checked_mul(blocks)?.checked_mul(cache.layer_bytes())?;
        cache.data = reserve(bytes);
        (!cache.data.is_null()).then_some(cache)
    }

    /// Bytes of a record: one KV head's part of a block in one layer.
    pub fn record_bytes(&self) -> usize {
        match self.kind {
            KvType::Q8 => 2 * BLOCK * (self.head_size + 4),
            KvType::F32 => 2 * BLOCK * self.head_size * 4,
        }
    }

    /// Bytes of one block in one layer.
    fn layer_bytes(&self) -> usize {
        self.kv_heads * self.record_bytes()
    }

    /// Bytes of one block in all layers.
    pub fn block_bytes(&self) -> usize {
        self.layers * self.layer_bytes()
    }

    pub fn record(&self, layer: usize, block: usize, kv_head: usize) -> *mut u8 {
        let at = (layer * self.blocks + block) * self.layer_bytes() + kv_head * self.record_bytes();
        unsafe { self.data.add(at) }
    }

    pub fn copy_block(&self, from: usize, to: usize) {
        for layer in 0..self.layers {
            let (from, to) = (self.record(layer, from, 0), self.record(layer, to, 0));
            unsafe { core::ptr::copy(from, to, self.layer_bytes()) };
        }
    }

    /// Gathers a block from all layers.
    pub unsafe fn read_block(&self, block: usize, out: *mut u8) {
        for layer in 0..self.layers {
            let bytes = self.layer_bytes();
            unsafe {
                copy_nonoverlapping(self.record(layer, block, 0), out.add(layer * bytes), bytes)
            };
        }
    }

    /// Puts back what `read_block` gave.
    pub unsafe fn write_block(&self, block: usize, from: *const u8) {
        for layer in 0..self.layers {
            let bytes = self.layer_bytes();
            unsafe {
                copy_nonoverlapping(from.add(layer * bytes), self.record(layer, block, 0), bytes)
            };
        }
    }

    /// Stores one token's key and value of one head. The key is left transformed.
    pub unsafe fn write<I: Isa>(
        &self,
        record: *mut u8,
        slot: usize,
        key: &mut [f32],
        value: &[f32],
    ) {
        match self.kind {
            KvType::Q8 => unsafe { self.write_q8::<I>(record, slot, key, value) },
            KvType::F32 => unsafe {
                let keys = record.cast::<f32>();
                let values = keys.add(BLOCK * self.head_size);
                let at = slot * self.head_size;
                copy_nonoverlapping(key.as_ptr(), keys.add(at), self.head_size);
                copy_nonoverlapping(value.as_ptr(), values.add(at), self.head_size);
            },
        }
    }

    unsafe fn write_q8<I: Isa>(
        &self,
        record: *mut u8,
        slot: usize,
        key: &mut [f32],
        value: &[f32],
    ) {
        let size = self.head_size;
        unsafe {
            math::hadamard(key, hadamard_size(size));
            let (scale, inverse) = scale_for(peak(key), KEY_BIAS as f32);
            for (group, x) in key.chunks_exact(4).enumerate() {
                let q = [0, 1, 2, 3]
                    .map(|i| ((x[i] * inverse).round_ties_even() as i32 + KEY_BIAS) as u8);
                I::store_lane(record.add(64 * group + slot / 4 * 16), slot % 4, q);
            }
            *record.add(BLOCK * size).cast::<f32>().add(slot) = scale;

            let values = record.add(BLOCK * (size + 4));
            let (scale, inverse) = scale_for(peak(value), 127.0);
            for (group, x) in value.chunks_exact(4).enumerate() {
                for (lane, x) in x.iter().enumerate() {
                    let q = (x * inverse).round_ties_even() as i8;
                    let at = values.add(64 * group + slot / 4 * 16);
                    let mut bytes = I::load_lane(at, lane);
                    bytes[slot % 4] = q as u8;
                    I::store_lane(at, lane, bytes);
                }
            }
            *values.add(BLOCK * size).cast::<f32>().add(slot) = scale;
        }
    }
}

/// Elements that are transformed together: the largest power of two that divides the head size.
pub fn hadamard_size(head_size: usize) -> usize {
    1 << head_size.trailing_zeros()
}

pub fn peak(x: &[f32]) -> f32 {
    let mut peak = f32x4_splat(0.0);
    for i in (0..x.len()).step_by(4) {
        peak = f32x4_pmax(peak, f32x4_abs(unsafe { math::load(x, i) }));
    }
    max_lane(peak)
}

/// Scale and its inverse that map `peak` to `limit`.
pub fn scale_for(peak: f32, limit: f32) -> (f32, f32) {
    if peak < TINY { (0.0, 0.0) } else { (peak / limit, limit / peak) }
}
