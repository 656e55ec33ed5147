//! The forward pass of a Llama-architecture transformer over a batch of new tokens: RMSNorm, rotary
//! embedding, grouped-query attention over the paged cache, SwiGLU, output layer and statistics.

use crate::activations::{Activations, BLOCK, Precision};
use crate::batch::{Batch, Token};
use crate::buffer::Buffer;
use crate::cache::Cache;
use crate::isa::Isa;
use crate::math::{rms_norm, swiglu};
use crate::matmul::{Output, matmul};
use crate::matrix::{BAND_ROWS, Matrix};
use crate::moments::Moments;
use crate::pool::Pool;
use crate::rope::Rope;
use crate::scratch::Scratch;
use crate::sketch::Sketch;
use crate::stats::{RUN, Run, Stats, statistics};
use crate::weights::{Shape, Slot, Weights};
use core::marker::PhantomData;

pub struct Model<I: Isa> {
    pub shape: Shape,
    /// How activations are rounded before weights of integer levels.
    pub precision: Precision,
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
        let (q, k, v) = ((Slot::Query, s.query), (Slot::Key, s.key), (Slot::Value, s.value));
        let last = layer + 1 == self.shape.layers;
        let input = self.normalize(norm, tokens.len());
        if let Some(moments) = moments {
            self.multiply(layer, [q, k], input);
            self.gather(moments, layer, tokens);
        }
        if last && tokens.iter().any(|token| !token.output) {
            self.multiply(layer, [k, v], input);
            self.write_kv(layer, batch, tokens);
            self.keep_output_rows(tokens);
            if tokens.is_empty() {
                return;
            }
            let input = self.normalize(norm, tokens.len());
            self.multiply(layer, [q], input);
        } else {
            self.multiply(layer, [q, k, v], input);
            self.write_kv(layer, batch, tokens);
        }
        self.attend(layer, batch, tokens);
        let attended = self.quantize(s.attended, tokens.len());
        self.multiply_add(layer, Slot::AttentionOutput, attended);
    }

    fn feed_forward_layer(&self, layer: usize, tokens: usize) {
        let input = self.normalize(self.vector(Slot::FeedForwardNorm, layer), tokens);
        let activated = self.activate(layer, input);
        self.multiply_add(layer, Slot::Down, activated);
    }

    /// Gate and up projection, SwiGLU, and its result quantised: one job, in which a thread goes on
    /// with what it has just written and waits for nobody's half.
    fn activate(&self, layer: usize, input: Activations) -> Activations {
        let (gate, up) = (self.matrix(Slot::Gate, layer), self.matrix(Slot::Up, layer));
        let s = &self.scratch;
        let (columns, floats) = (self.shape.feed_forward, s.gate.data);
        let a = Activations { columns, floats, packed: s.activated, ..input };
        self.pool.run(a.blocks(), &|blocks| {
            let columns = BLOCK * blocks.start..BLOCK * blocks.end;
            let bands = columns.start / BAND_ROWS..columns.end / BAND_ROWS;
            unsafe {
                matmul::<I>(gate, &input, output_of(s.gate, false), bands.clone());
                matmul::<I>(up, &input, output_of(s.up, false), bands);
                for i in 0..a.tokens {
                    swiglu(&mut s.gate.row(i)[columns.clone()], &s.up.row(i)[columns.clone()]);
                }
                a.quantize::<I>(0..a.tiles(), blocks);
            }
        });
        a
    }

    /// Logits and their statistics. Who has computed a run of a row's logits sums its terms while they
    /// are at hand; what is left to do for the whole row looks at few of them.
    fn output_layer(&mut self, rows: usize) {
        let s = &self.scratch;
        let input = self.normalize(self.vector(Slot::OutputNorm, 0), rows);
        let output = self.weights.matrix(Slot::Output, 0);
        let matrix = output.unwrap_or_else(|| self.matrix(Slot::Embedding, 0));
        let vocabulary = self.shape.vocabulary;
        let logits_of = |row: usize| unsafe { &s.logits.row(row)[..vocabulary] };
        let runs_of = |row: usize| unsafe { s.runs_of(row) };
        self.pool.run(vocabulary.div_ceil(RUN), &|runs| {
            for run in runs {
                let logits = RUN * run..(RUN * (run + 1)).min(vocabulary);
                let bands = logits.start / BAND_ROWS..logits.end.div_ceil(BAND_ROWS);
                unsafe { matmul::<I>(matrix, &input, output_of(s.logits, false), bands) };
                for row in 0..rows {
                    runs_of(row)[run] = Run::of(&logits_of(row)[logits.clone()], 1.0);
                }
            }
        });
        self.pool.run(rows, &|range| {
            for row in range {
                let (ids, best) = unsafe { (s.top_ids.row(row), s.top_logits.row(row)) };
                let ids: &mut [u32] = unsafe { core::mem::transmute(ids) };
                let (logits, ends) = (logits_of(row), &self.end_tokens);
                let stats = statistics(runs_of(row), logits, ends, ids, best);
                unsafe { *s.stats.data.cast::<Stats>().add(row) = stats };
            }
        });
    }

    /// Normalises the residual stream and quantises it.
    fn normalize(&self, weight: &[f32], tokens: usize) -> Activations {
        let s = &self.scratch;
        let a = self.activations(s.normed, tokens);
        self.pool.run(a.tiles(), &|tiles| {
            for i in a.tokens_of(tiles.clone()) {
                unsafe { rms_norm(s.hidden.row(i), weight, self.shape.epsilon, s.normed.row(i)) };
            }
            unsafe { a.quantize::<I>(tiles, 0..a.blocks()) };
        });
        a
    }

    fn quantize(&self, from: Buffer, tokens: usize) -> Activations {
        let a = self.activations(from, tokens);
        self.pool.run(a.tiles(), &|tiles| unsafe { a.quantize::<I>(tiles, 0..a.blocks()) });
        a
    }

    fn activations(&self, from: Buffer, tokens: usize) -> Activations {
        let (packed, precision) = (self.scratch.packed, self.precision);
        Activations { tokens, columns: from.width, precision, floats: from.data, packed }
    }

    fn multiply<const N: usize>(
        &self,
        layer: usize,
        products: [(Slot, Buffer); N],
        input: Activations,
    ) {
        let products = products.map(|(slot, to)| (self.matrix(slot, layer), output_of(to, false)));
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
