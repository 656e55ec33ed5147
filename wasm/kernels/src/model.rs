//! The forward pass of a Llama-architecture transformer over a batch of new tokens: RMSNorm, rotary
//! embedding, grouped-query attention over the paged cache, SwiGLU, output layer and statistics.

use crate::activations::Activations;
use crate::attention_f32;
use crate::attention_q8;
use crate::batch::{Batch, Token};
use crate::buffer::Buffer;
use crate::cache::{BLOCK, Cache, KvType};
use crate::isa::Isa;
use crate::math::{rms_norm, swiglu};
use crate::matmul::{Output, matmul};
use crate::matrix::Matrix;
use crate::moments::Moments;
use crate::pool::Pool;
use crate::rope::{Rope, rotate};
use crate::scan::{Codes, add_shares};
use crate::scratch::Scratch;
use crate::selection::choose;
use crate::sketch::Sketch;
use crate::stats::{Stats, statistics};
use crate::weights::{Shape, Slot, Weights};
use core::marker::PhantomData;

pub struct Model<I: Isa> {
    pub shape: Shape,
    pub weights: Weights,
    pub rope: Rope,
    pub cache: Cache,
    /// What pruned attention looks at first.
    pub sketch: Option<Sketch>,
    /// Gathered where the host wants them.
    pub moments: Option<Moments>,
    pub scratch: Scratch,
    pub pool: Pool,
    pub end_tokens: Vec<u32>,
    pub isa: PhantomData<I>,
}

impl<I: Isa> Model<I> {
    /// Runs a step. Leaves logits and statistics of the output rows in the scratch.
    pub fn forward(&mut self, batch: &Batch) {
        let mut moments = self.moments.take();
        self.run(batch, &mut moments);
        self.moments = moments;
    }

    fn run(&mut self, batch: &Batch, moments: &mut Option<Moments>) {
        let s = &self.scratch;
        for (i, token) in batch.tokens.iter().enumerate() {
            let embedding = self.matrix(Slot::Embedding, 0);
            unsafe { embedding.dequantize_row::<I>(token.id as usize, s.hidden.row(i)) };
            self.rope.angles(token.position, unsafe { s.angles.row(i) });
            unsafe { s.attention.row(i).fill(0.0) };
        }
        let mut tokens = batch.tokens.clone();
        for layer in 0..self.shape.layers {
            self.attend_layer(layer, batch, &mut tokens, moments);
            if tokens.is_empty() {
                return;
            }
            self.feed_forward_layer(layer, tokens.len());
        }
        self.output_layer(tokens.len());
    }

    fn matrix(&self, slot: Slot, layer: usize) -> &Matrix {
        self.weights.matrix(slot, layer).expect("the host loads every tensor")
    }

    fn vector(&self, slot: Slot, layer: usize) -> &[f32] {
        self.weights.vector(slot, layer).expect("the host loads every tensor")
    }

    /// Attention with its residual. Writes the KV of every token; in the last layer, tokens without
    /// output are then dropped from `tokens` and from the residual stream.
    fn attend_layer(
        &self,
        layer: usize,
        batch: &Batch,
        tokens: &mut Vec<Token>,
        moments: &mut Option<Moments>,
    ) {
        let s = &self.scratch;
        let norm = self.vector(Slot::AttentionNorm, layer);
        let kv = [(Slot::Key, s.key), (Slot::Value, s.value)];
        let q = [(Slot::Query, s.query)];
        let last = layer + 1 == self.shape.layers;
        let input = self.normalize(norm, tokens.len());
        if let Some(moments) = moments {
            self.multiply(layer, &[q[0], kv[0]], input);
            self.gather(moments, layer, tokens);
        }
        if last && tokens.iter().any(|token| !token.output) {
            self.multiply(layer, &kv, input);
            self.write_kv(layer, batch, tokens);
            self.keep_output_rows(tokens);
            if tokens.is_empty() {
                return;
            }
            let input = self.normalize(norm, tokens.len());
            self.multiply(layer, &q, input);
        } else {
            self.multiply(layer, &[q[0], kv[0], kv[1]], input);
            self.write_kv(layer, batch, tokens);
        }
        self.attend(layer, batch, tokens);
        let attended = self.quantize(s.attended, tokens.len());
        self.multiply_add(layer, Slot::AttentionOutput, attended);
    }

    fn feed_forward_layer(&self, layer: usize, tokens: usize) {
        let s = &self.scratch;
        let input = self.normalize(self.vector(Slot::FeedForwardNorm, layer), tokens);
        self.multiply(layer, &[(Slot::Gate, s.gate), (Slot::Up, s.up)], input);
        self.pool.run(tokens, &|range| {
            for i in range {
                unsafe { swiglu(s.gate.row(i), s.up.row(i)) };
            }
        });
        let activated = self.quantize(s.gate, tokens);
        self.multiply_add(layer, Slot::Down, activated);
    }

    fn output_layer(&mut self, rows: usize) {
        let s = &self.scratch;
        let input = self.normalize(self.vector(Slot::OutputNorm, 0), rows);
        let output = self.weights.matrix(Slot::Output, 0);
        let matrix = output.unwrap_or_else(|| self.matrix(Slot::Embedding, 0));
        self.multiply_all(&[(matrix, output_of(s.logits, false))], input);
        self.pool.run(rows, &|range| {
            for i in range {
                let logits = unsafe { &s.logits.row(i)[..self.shape.vocabulary] };
                let (ids, best) = unsafe { (s.top_ids.row(i), s.top_logits.row(i)) };
                let ids: &mut [u32] = unsafe { core::mem::transmute(ids) };
                let stats = statistics(logits, &self.end_tokens, ids, best);
                unsafe { *s.stats.data.cast::<Stats>().add(i) = stats };
            }
        });
    }

    /// Normalises the residual stream and quantises it.
    fn normalize(&self, weight: &[f32], tokens: usize) -> Activations {
        let s = &self.scratch;
        let a = Activations {
            tokens,
            columns: self.shape.hidden,
            floats: s.normed.data,
            packed: s.packed,
        };
        self.pool.run(a.tiles(), &|tiles| {
            for i in a.tokens_of(tiles.clone()) {
                unsafe { rms_norm(s.hidden.row(i), weight, self.shape.epsilon, s.normed.row(i)) };
            }
            unsafe { a.quantize::<I>(tiles) };
        });
        a
    }

    fn quantize(&self, from: Buffer, tokens: usize) -> Activations {
        let packed = self.scratch.packed;
        let a = Activations { tokens, columns: from.width, floats: from.data, packed };
        self.pool.run(a.tiles(), &|tiles| unsafe { a.quantize::<I>(tiles) });
        a
    }

    fn multiply(&self, layer: usize, products: &[(Slot, Buffer)], input: Activations) {
        let products: Vec<_> = products
            .iter()
            .map(|&(slot, to)| (self.matrix(slot, layer), output_of(to, false)))
            .collect();
        self.multiply_all(&products, input);
    }

    /// Adds the product to the residual stream.
    fn multiply_add(&self, layer: usize, slot: Slot, input: Activations) {
        self.multiply_all(
            &[(self.matrix(slot, layer), output_of(self.scratch.hidden, true))],
            input,
        );
    }

    /// Several products of the same input, their bands cut evenly over the threads.
    fn multiply_all(&self, products: &[(&Matrix, Output)], input: Activations) {
        let bands: usize = products.iter().map(|(matrix, _)| matrix.bands()).sum();
        self.pool.run(bands, &|range| {
            let mut first = 0;
            for (matrix, out) in products {
                let start = range.start.max(first) - first;
                let end = range.end.min(first + matrix.bands()).saturating_sub(first);
                if start < end {
                    unsafe { matmul::<I>(matrix, &input, *out, start..end) };
                }
                first += matrix.bands();
            }
        });
    }

    /// Rotates the keys of all tokens and stores them with the values.
    fn write_kv(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
        let (s, size) = (&self.scratch, self.shape.head_size);
        self.pool.run(tokens.len() * self.shape.kv_heads, &|range| {
            for unit in range {
                let (i, head) = (unit / self.shape.kv_heads, unit % self.shape.kv_heads);
                let (token, part) = (&tokens[i], head * size..(head + 1) * size);
                let block = batch.blocks(token)[token.position / BLOCK] as usize;
                unsafe {
                    let key = &mut s.key.row(i)[part.clone()];
                    rotate(&mut key[..self.rope.dimensions()], s.angles.row(i));
                    let record = self.cache.record(layer, block, head);
                    let value = &s.value.row(i)[part];
                    if let Some(sketch) = &self.sketch {
                        sketch.write::<I>(layer, head, block, token.position % BLOCK, key);
                    }
                    self.cache.write::<I>(record, token.position % BLOCK, key, value);
                }
            }
        });
    }

    /// Takes note of the queries and keys that the step has just multiplied, not yet rotated.
    fn gather(&self, moments: &mut Moments, layer: usize, tokens: &[Token]) {
        let (s, size) = (&self.scratch, self.shape.head_size);
        let group = self.shape.heads / self.shape.kv_heads;
        let mut angles = vec![0.0; self.rope.dimensions()];
        for (i, token) in tokens.iter().enumerate() {
            self.rope.angles(token.position * moments.stretch, &mut angles);
            let (keys, queries) = unsafe { (s.key.row(i), s.query.row(i)) };
            for head in keys.chunks_exact_mut(size).chain(queries.chunks_exact_mut(size)) {
                rotate(&mut head[..angles.len()], &angles);
            }
            let groups = queries.chunks_exact(group * size);
            for (head, (key, queries)) in keys.chunks_exact(size).zip(groups).enumerate() {
                moments.add(layer, head, key, queries.chunks_exact(size));
            }
        }
        moments.tokens += if layer == 0 { tokens.len() } else { 0 };
    }

    /// Attention of every token, unit by unit of one KV head and the query heads that share it.
    fn attend(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
        let kv_heads = self.shape.kv_heads;
        self.pool.run(tokens.len() * kv_heads, &|range| {
            for unit in range {
                let (i, kv_head) = (unit / kv_heads, unit % kv_heads);
                self.attend_group(layer, batch.blocks(&tokens[i]), &tokens[i], i, kv_head);
            }
        });
    }

    fn attend_group(
        &self,
        layer: usize,
        blocks: &[u32],
        token: &Token,
        row: usize,
        kv_head: usize,
    ) {
        let (s, size) = (&self.scratch, self.shape.head_size);
        let group = self.shape.heads / self.shape.kv_heads;
        let part = kv_head * group * size..(kv_head + 1) * group * size;
        let (q, out) =
            unsafe { (&mut s.query.row(row)[part.clone()], &mut s.attended.row(row)[part]) };
        for q in q.chunks_exact_mut(size) {
            rotate(&mut q[..self.rope.dimensions()], unsafe { s.angles.row(row) });
        }
        let blocks = &blocks[..(token.position + 1).div_ceil(BLOCK)];
        let record = |&block: &u32| self.cache.record(layer, block as usize, kv_head).cast_const();
        let (records, dropped): (Vec<*const u8>, f32) = match &self.sketch {
            Some(sketch) if !token.plan.reads_all(blocks.len()) => {
                let shares = self.block_shares(sketch, layer, kv_head, blocks, token, q);
                let mut chosen = Vec::with_capacity(blocks.len());
                let dropped = choose(token.plan, &shares, &mut chosen);
                (chosen.iter().map(|&i| record(&blocks[i])).collect(), dropped)
            }
            _ => (blocks.iter().map(record).collect(), 0.0),
        };
        // Of the chosen blocks all but the last are full.
        let count = (records.len() - 1) * BLOCK + token.position % BLOCK + 1;
        unsafe {
            let counters = &mut s.attention.row(token.index)[2 * kv_head..2 * kv_head + 2];
            counters[0] += records.len() as f32;
            counters[1] += dropped;
        }
        self.attend_records(q, &records, count, out);
    }

    /// The share of the attention that each block is thought to hold, in the mean of a group's heads.
    fn block_shares(
        &self,
        sketch: &Sketch,
        layer: usize,
        kv_head: usize,
        blocks: &[u32],
        token: &Token,
        q: &[f32],
    ) -> Vec<f32> {
        let (size, dimensions) = (self.shape.head_size, sketch.shape.dimensions);
        let heads = q.len() / size;
        let mut mapped = vec![0.0; heads * dimensions];
        for (q, out) in q.chunks_exact(size).zip(mapped.chunks_exact_mut(dimensions)) {
            sketch.map_query(layer, kv_head, q, out);
        }
        let codes =
            Codes { data: sketch.codes(layer, kv_head), bytes: sketch.shape.code_bytes(), blocks };
        let mut shares = vec![0.0; blocks.len()];
        for q in mapped.chunks(4 * dimensions) {
            let (tokens, shares) = (token.position + 1, &mut shares);
            match q.len() / dimensions {
                1 => add_shares::<I, 1>(q, dimensions, &codes, tokens, shares),
                2 => add_shares::<I, 2>(q, dimensions, &codes, tokens, shares),
                3 => add_shares::<I, 3>(q, dimensions, &codes, tokens, shares),
                _ => add_shares::<I, 4>(q, dimensions, &codes, tokens, shares),
            }
        }
        shares.iter_mut().for_each(|share| *share /= heads as f32);
        shares
    }

    /// Exact attention of a group's rotated queries to the first `tokens` tokens of `records`.
    fn attend_records(&self, q: &mut [f32], records: &[*const u8], tokens: usize, out: &mut [f32]) {
        let size = self.shape.head_size;
        if self.cache.kind == KvType::F32 {
            for (q, out) in q.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
                unsafe { attention_f32::attend(q, records, tokens, out) };
            }
            return;
        }
        let heads_at_once = 4 * size;
        for (q, out) in q.chunks_mut(heads_at_once).zip(out.chunks_mut(heads_at_once)) {
            match q.len() / size {
                1 => self.attend_heads::<1>(q, records, tokens, out),
                2 => self.attend_heads::<2>(q, records, tokens, out),
                3 => self.attend_heads::<3>(q, records, tokens, out),
                _ => self.attend_heads::<4>(q, records, tokens, out),
            }
        }
    }

    fn attend_heads<const H: usize>(
        &self,
        q: &mut [f32],
        records: &[*const u8],
        tokens: usize,
        out: &mut [f32],
    ) {
        let mut scratch = Vec::with_capacity(records.len());
        unsafe {
            scratch.set_len(records.len());
            attention_q8::attend::<I, H>(
                q,
                self.shape.head_size,
                records,
                tokens,
                &mut scratch,
                out,
            );
        }
    }

    /// Moves the rows of tokens with output to the front, and drops the others.
    fn keep_output_rows(&self, tokens: &mut Vec<Token>) {
        let s = &self.scratch;
        let kept = (0..tokens.len()).filter(|&i| tokens[i].output);
        for (to, from) in kept.enumerate() {
            if to != from {
                unsafe {
                    s.hidden.row(to).copy_from_slice(s.hidden.row(from));
                    s.angles.row(to).copy_from_slice(s.angles.row(from));
                }
            }
        }
        tokens.retain(|token| token.output);
    }
}

fn output_of(buffer: Buffer, add: bool) -> Output {
    Output { data: buffer.data, stride: buffer.width, add }
}
