//! The paged KV cache: blocks of 16 tokens, laid out [layer][block][KV head], all reserved at once.
//! A record holds one head's 16 keys and values in one of two forms.
//!
//! `Q8`, made for integer dots:
//! ```text
//! keys     [head/4 dimension groups][16 tokens][4 dimensions]  int8; rotated by Walsh-Hadamard
//! scales   [16] f32   of each token's key
//! offsets  [16] i32   `KEY_BIAS` times the sum of each token's key
//! values   [head/4 groups][4 token groups][4 dimensions][4 tokens]  int8
//! scales   [16] f32   of each token's value
//! ```
//! In keys the lanes of a vector are tokens, in values they are dimensions, so neither QK nor PV sums
//! across lanes. Every token has its own scale: a block that fills never changes what is there.
//!
//! `F32`, the reference: keys and values as [16 tokens][head] f32.

use crate::activations::TINY;
use crate::isa::Isa;
use crate::math;
use crate::memory::reserve;
use crate::records::Records;
use core::ptr::copy_nonoverlapping;

/// Tokens in a block.
pub const BLOCK: usize = 16;
/// Bytes of 16 scales or offsets.
const SCALES: usize = 4 * BLOCK;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KvType {
    Q8,
    F32,
}

impl KvType {
    /// The type with the host's number: 0 q8, 1 f32.
    pub fn from_id(id: u32) -> KvType {
        if id == 1 { KvType::F32 } else { KvType::Q8 }
    }

    /// Bytes of a record: one KV head's part of a block in one layer.
    pub fn record_bytes(self, head_size: usize) -> usize {
        match self {
            KvType::Q8 => 2 * BLOCK * head_size + 3 * SCALES,
            KvType::F32 => 2 * BLOCK * head_size * 4,
        }
    }
}

pub struct Cache {
    pub kind: KvType,
    pub blocks: usize,
    pub layers: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    record_bytes: usize,
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
        let record_bytes = kind.record_bytes(head_size);
        let data = core::ptr::null_mut();
        let mut cache = Cache { kind, blocks, layers, kv_heads, head_size, record_bytes, data };
        let bytes = layers.checked_mul(blocks)?.checked_mul(cache.layer_bytes())?;
        cache.data = reserve(bytes);
        (!cache.data.is_null()).then_some(cache)
    }

    /// Bytes of one block in one layer.
    fn layer_bytes(&self) -> usize {
        self.kv_heads * self.record_bytes
    }

    /// Bytes of one block in all layers.
    pub fn block_bytes(&self) -> usize {
        self.layers * self.layer_bytes()
    }

    pub fn record(&self, layer: usize, block: usize, kv_head: usize) -> *mut u8 {
        let at = (layer * self.blocks + block) * self.layer_bytes() + kv_head * self.record_bytes;
        unsafe { self.data.add(at) }
    }

    /// A KV head's records of these blocks, of which all but the last are full.
    pub fn records<'a>(
        &self,
        layer: usize,
        kv_head: usize,
        blocks: &'a [u32],
        tokens: usize,
    ) -> Records<'a> {
        unsafe { Records::new(self.record(layer, 0, kv_head), self.layer_bytes(), blocks, tokens) }
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
        let at = Q8Layout::new(self.head_size);
        let lane_at =
            |part: usize, group: usize| unsafe { record.add(part + 64 * group + slot / 4 * 16) };
        let set =
            |part: usize, value: u32| unsafe { *record.add(part).cast::<u32>().add(slot) = value };
        math::hadamard(key, hadamard_size(key.len()));
        let (scale, inverse) = scale_for(peak(key));
        let mut sum = 0;
        for (group, x) in key.chunks_exact(4).enumerate() {
            let q = [0, 1, 2, 3].map(|i| (x[i] * inverse).round_ties_even() as i8);
            sum += q.iter().map(|&q| q as i32).sum::<i32>();
            unsafe { I::store_lane(lane_at(at.keys, group), slot % 4, q.map(|q| q as u8)) };
        }
        set(at.key_scales, scale.to_bits());
        set(at.key_offsets, (I::KEY_BIAS * sum) as u32);

        let (scale, inverse) = scale_for(peak(value));
        for (group, x) in value.chunks_exact(4).enumerate() {
            for (lane, x) in x.iter().enumerate() {
                let byte = (x * inverse).round_ties_even() as i8 as u8;
                unsafe { I::store_byte(lane_at(at.values, group), lane, slot % 4, byte) };
            }
        }
        set(at.value_scales, scale.to_bits());
    }
}

/// Where the parts of a `Q8` record begin.
#[derive(Clone, Copy)]
pub struct Q8Layout {
    pub keys: usize,
    pub key_scales: usize,
    pub key_offsets: usize,
    pub values: usize,
    pub value_scales: usize,
}

impl Q8Layout {
    #[inline(always)]
    pub fn new(head_size: usize) -> Q8Layout {
        let key_scales = BLOCK * head_size;
        let values = key_scales + 2 * SCALES;
        Q8Layout {
            keys: 0,
            key_scales,
            key_offsets: key_scales + SCALES,
            values,
            value_scales: values + BLOCK * head_size,
        }
    }
}

/// Elements that are transformed together: the largest power of two that divides the head size.
pub fn hadamard_size(head_size: usize) -> usize {
    1 << head_size.trailing_zeros()
}

/// The largest magnitude of a head.
pub fn peak(x: &[f32]) -> f32 {
    math::peak((0..x.len()).step_by(4).map(|i| unsafe { math::load(x, i) }))
}

/// Scale and its inverse that map `peak` to 127.
pub fn scale_for(peak: f32) -> (f32, f32) {
    if peak < TINY { (0.0, 0.0) } else { (peak / 127.0, 127.0 / peak) }
}
