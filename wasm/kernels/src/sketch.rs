//! Keys of lower rank in 4 bits, scanned to find where the attention lies (after Loki, arXiv
//! 2406.02542). Codes of a block lie together, apart from its record, in streams of their own:
//!
//! ```text
//! [layer][KV head][block][dimensions / 8][4 token groups][4 tokens][4 bytes]
//! ```
//! A byte holds dimension i in its low and i + 4 in its high nibble, each plus 8. The lanes of a vector
//! are tokens. The 8 adds the same to every score of a query, which the softmax does not see.

use crate::cache::BLOCK;
use crate::isa::Isa;
use crate::math;
use crate::memory::reserve;
use core::arch::wasm32::*;
use core::ptr::copy;

/// Largest magnitude of a code.
const LARGEST: f32 = 7.0;
const ZERO: f32 = 8.0;

/// What a sketch is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SketchShape {
    pub layers: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    pub blocks: usize,
    /// Of a code, a multiple of 8.
    pub dimensions: usize,
}

impl SketchShape {
    /// Elements of a map.
    fn map(&self) -> usize {
        self.layers * self.kv_heads * self.dimensions * self.head_size
    }

    /// Floats that the host gives: key map, key offset, query map, as `KeySketch` has them.
    pub fn given(&self) -> usize {
        2 * self.map() + self.layers * self.kv_heads * self.dimensions
    }

    /// Bytes of a block's codes in one layer and KV head.
    pub fn code_bytes(&self) -> usize {
        BLOCK / 2 * self.dimensions
    }

    /// Bytes of a block's codes in all layers and KV heads.
    pub fn block_bytes(&self) -> usize {
        self.layers * self.kv_heads * self.code_bytes()
    }
}

pub struct Sketch {
    pub shape: SketchShape,
    /// [layers][KV heads][head size][dimensions]: columns of the host's maps.
    key_map: Vec<f32>,
    query_map: Vec<f32>,
    /// [layers][KV heads][dimensions]
    key_offset: Vec<f32>,
    codes: *mut u8,
}

unsafe impl Send for Sketch {}
unsafe impl Sync for Sketch {}

impl Sketch {
    /// `None` when memory is exhausted.
    pub fn new(shape: SketchShape, given: &[f32]) -> Option<Sketch> {
        let codes = reserve(shape.blocks.checked_mul(shape.block_bytes())?);
        let none = Vec::new;
        let mut sketch =
            Sketch { shape, key_map: none(), query_map: none(), key_offset: none(), codes };
        sketch.set(given);
        (!codes.is_null()).then_some(sketch)
    }

    /// Takes other maps of the same shape.
    pub fn set(&mut self, given: &[f32]) {
        let map = self.shape.map();
        let (key_map, rest) = given.split_at(map);
        let (key_offset, query_map) = rest.split_at(rest.len() - map);
        self.key_map = self.transposed(key_map);
        self.query_map = self.transposed(query_map);
        self.key_offset = key_offset.to_vec();
    }

    fn transposed(&self, map: &[f32]) -> Vec<f32> {
        let SketchShape { head_size, dimensions, .. } = self.shape;
        let head = |map: &[f32]| -> Vec<f32> {
            (0..map.len()).map(|i| map[i % dimensions * head_size + i / dimensions]).collect()
        };
        map.chunks_exact(head_size * dimensions).flat_map(head).collect()
    }

    /// Codes of a head's blocks, [blocks][code bytes].
    pub fn codes(&self, layer: usize, kv_head: usize) -> *mut u8 {
        let head = layer * self.shape.kv_heads + kv_head;
        unsafe { self.codes.add(head * self.shape.blocks * self.shape.code_bytes()) }
    }

    /// Writes the code of a rotated key.
    pub unsafe fn write<I: Isa>(
        &self,
        layer: usize,
        kv_head: usize,
        block: usize,
        slot: usize,
        key: &[f32],
    ) {
        let dimensions = self.shape.dimensions;
        let mut code = [0.0; 64];
        self.map(&self.key_map, layer, kv_head, key, &mut code[..dimensions]);
        let offset = self.at(&self.key_offset, layer, kv_head, dimensions);
        let nibble = |i: usize| {
            let x = (code[i] - offset[i]).round_ties_even();
            (x.clamp(-LARGEST, LARGEST) + ZERO) as u8
        };
        for pair in 0..dimensions / 8 {
            let bytes = [0, 1, 2, 3].map(|i| nibble(8 * pair + i) | nibble(8 * pair + 4 + i) << 4);
            let at = block * self.shape.code_bytes() + 64 * pair + slot / 4 * 16;
            unsafe { I::store_lane(self.codes(layer, kv_head).add(at), slot % 4, bytes) };
        }
    }

    /// Maps a rotated query to `out`, which is as long as a code.
    pub fn map_query(&self, layer: usize, kv_head: usize, q: &[f32], out: &mut [f32]) {
        self.map(&self.query_map, layer, kv_head, q, out);
    }

    fn map(&self, map: &[f32], layer: usize, kv_head: usize, x: &[f32], out: &mut [f32]) {
        let map = self.at(map, layer, kv_head, x.len() * out.len());
        out.fill(0.0);
        for (x, column) in x.iter().zip(map.chunks_exact(out.len())) {
            for i in (0..out.len()).step_by(4) {
                unsafe {
                    let add = f32x4_mul(f32x4_splat(*x), math::load(column, i));
                    let sum = f32x4_add(math::load(out, i), add);
                    math::save(out, i, sum);
                }
            }
        }
    }

    /// The part of one head in an array of `size` elements a head.
    fn at<'a>(&self, all: &'a [f32], layer: usize, kv_head: usize, size: usize) -> &'a [f32] {
        let head = layer * self.shape.kv_heads + kv_head;
        &all[head * size..(head + 1) * size]
    }

    pub fn copy_block(&self, from: usize, to: usize) {
        let bytes = self.shape.code_bytes();
        for head in self.heads() {
            unsafe { copy(head.add(from * bytes), head.add(to * bytes), bytes) };
        }
    }

    /// Gathers a block's codes from all heads.
    pub unsafe fn read_block(&self, block: usize, out: *mut u8) {
        let bytes = self.shape.code_bytes();
        for (i, head) in self.heads().enumerate() {
            unsafe { copy(head.add(block * bytes), out.add(i * bytes), bytes) };
        }
    }

    /// Puts back what `read_block` gave.
    pub unsafe fn write_block(&self, block: usize, from: *const u8) {
        let bytes = self.shape.code_bytes();
        for (i, head) in self.heads().enumerate() {
            unsafe { copy(from.add(i * bytes), head.add(block * bytes), bytes) };
        }
    }

    fn heads(&self) -> impl Iterator<Item = *mut u8> {
        let SketchShape { layers, kv_heads, .. } = self.shape;
        (0..layers * kv_heads).map(move |i| self.codes(i / kv_heads, i % kv_heads))
    }
}
