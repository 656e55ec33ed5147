//! Second moments of rotated keys and queries, from which the host finds the basis of a sketch.

use crate::math;
use core::arch::wasm32::*;

pub struct Moments {
    pub tokens: usize,
    /// Tokens are taken as if they stood at so many times their position: the slowly turning pairs
    /// have to be seen all over a long context, and a short text is enough for everything else.
    pub stretch: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    /// Sums, for each [layer][KV head]: keys [head size], keys squared [head size][head size], queries
    /// squared alike.
    pub sums: Vec<f32>,
}

impl Moments {
    pub fn new(layers: usize, kv_heads: usize, head_size: usize, stretch: usize) -> Moments {
        let size = layers * kv_heads * (head_size + 2 * head_size * head_size);
        Moments { tokens: 0, stretch, kv_heads, head_size, sums: vec![0.0; size] }
    }

    /// Adds a token's key of one KV head and the queries of its group, each [head size].
    pub fn add<'a>(
        &mut self,
        layer: usize,
        kv_head: usize,
        key: &[f32],
        queries: impl Iterator<Item = &'a [f32]>,
    ) {
        let size = self.head_size;
        let part = size + 2 * size * size;
        let at = (layer * self.kv_heads + kv_head) * part;
        let (mean, squares) = self.sums[at..at + part].split_at_mut(size);
        let (keys, of_queries) = squares.split_at_mut(size * size);
        add_scaled(mean, key, 1.0);
        add_square(keys, key);
        for q in queries {
            add_square(of_queries, q);
        }
    }
}

fn add_square(square: &mut [f32], x: &[f32]) {
    for (row, &scale) in square.chunks_exact_mut(x.len()).zip(x) {
        add_scaled(row, x, scale);
    }
}

fn add_scaled(to: &mut [f32], x: &[f32], scale: f32) {
    for i in (0..x.len()).step_by(4) {
        unsafe {
            let add = f32x4_mul(math::load(x, i), f32x4_splat(scale));
            math::save(to, i, f32x4_add(math::load(to, i), add));
        }
    }
}
