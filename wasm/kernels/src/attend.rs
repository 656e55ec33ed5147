//! A layer's attention over the paged cache: keys and values go in, then each token attends to all
//! blocks of its sequence, or to those that its plan chooses.

use crate::attention_f32;
use crate::attention_q8::{PART, Partial, Query, join, parts};
use crate::batch::{Batch, Token};
use crate::cache::{BLOCK, KvType};
use crate::isa::Isa;
use crate::model::Model;
use crate::moments::Moments;
use crate::rope::rotate;
use crate::scan::{Codes, add_shares};
use crate::selection::choose;
use crate::sketch::Sketch;

/// What a unit attends to: blocks, all but the last of them full.
struct Context {
    records: Vec<*const u8>,
    tokens: usize,
}

unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    fn parts(&self) -> impl Iterator<Item = (&[*const u8], usize)> {
        parts(&self.records, self.tokens)
    }
}

impl<I: Isa> Model<I> {
    /// Rotates the keys of all tokens and stores them with the values.
    pub fn write_kv(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
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
    pub fn gather(&self, moments: &mut Moments, layer: usize, tokens: &[Token]) {
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

    /// Attention of every token, unit by unit of one KV head and the query heads that share it. Where
    /// long contexts leave fewer units than keep all threads at work, part by part of the context.
    pub fn attend(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
        let kv_heads = self.shape.kv_heads;
        let units = tokens.len() * kv_heads;
        let long = |token: &Token| token.position >= PART * BLOCK;
        let threads = self.pool.threads();
        let few = threads > 1 && units < 4 * threads;
        if few && self.cache.kind == KvType::Q8 && tokens.iter().any(long) {
            return self.attend_in_parts(layer, batch, tokens);
        }
        self.pool.run(units, &|range| {
            for unit in range {
                let (i, kv_head) = (unit / kv_heads, unit % kv_heads);
                let (q, out) = self.query_and_output(i, kv_head);
                let context = self.context(layer, batch, &tokens[i], i, kv_head);
                self.attend_context(q, &context, out);
            }
        });
    }

    /// The same, to the bit.
    fn attend_in_parts(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
        let kv_heads = self.shape.kv_heads;
        let units = self.pool.map(tokens.len() * kv_heads, |unit| {
            let (i, kv_head) = (unit / kv_heads, unit % kv_heads);
            let context = self.context(layer, batch, &tokens[i], i, kv_head);
            (context, self.queries(self.query_and_output(i, kv_head).0))
        });
        let counts = units.iter().map(|(context, _)| context.parts().count());
        let parts: Vec<(usize, usize)> = counts
            .enumerate()
            .flat_map(|(unit, count)| (0..count).map(move |i| (unit, i)))
            .collect();
        let partials = self.pool.map(parts.len(), |i| {
            let (unit, part) = parts[i];
            let (context, queries) = &units[unit];
            let (records, count) = context.parts().nth(part).expect("counted above");
            unsafe { Partial::of::<I>(queries, self.shape.head_size, records, count) }
        });
        let mut partials = partials.into_iter();
        for (unit, (context, _)) in units.iter().enumerate() {
            let (_, out) = self.query_and_output(unit / kv_heads, unit % kv_heads);
            join(partials.by_ref().take(context.parts().count()), out);
        }
    }

    /// The heads of a unit: queries, and where their attention goes.
    #[allow(clippy::mut_from_ref)]
    fn query_and_output(&self, row: usize, kv_head: usize) -> (&mut [f32], &mut [f32]) {
        let group = self.shape.heads / self.shape.kv_heads * self.shape.head_size;
        let part = kv_head * group..(kv_head + 1) * group;
        let s = &self.scratch;
        unsafe { (&mut s.query.row(row)[part.clone()], &mut s.attended.row(row)[part]) }
    }

    /// Rotates a unit's queries, and chooses what they attend to.
    fn context(
        &self,
        layer: usize,
        batch: &Batch,
        token: &Token,
        row: usize,
        kv_head: usize,
    ) -> Context {
        let s = &self.scratch;
        let (q, _) = self.query_and_output(row, kv_head);
        for q in q.chunks_exact_mut(self.shape.head_size) {
            rotate(&mut q[..self.rope.dimensions()], unsafe { s.angles.row(row) });
        }
        let blocks = &batch.blocks(token)[..(token.position + 1).div_ceil(BLOCK)];
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
        let tokens = (records.len() - 1) * BLOCK + token.position % BLOCK + 1;
        unsafe {
            let counters = &mut s.attention.row(token.index)[2 * kv_head..2 * kv_head + 2];
            counters[0] += records.len() as f32;
            counters[1] += dropped;
        }
        Context { records, tokens }
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

    /// Exact attention of a unit's rotated queries.
    fn attend_context(&self, q: &mut [f32], context: &Context, out: &mut [f32]) {
        let size = self.shape.head_size;
        if self.cache.kind == KvType::F32 {
            for (q, out) in q.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
                unsafe { attention_f32::attend(q, &context.records, context.tokens, out) };
            }
            return;
        }
        let queries = self.queries(q);
        let part = |(records, count)| unsafe { Partial::of::<I>(&queries, size, records, count) };
        join(context.parts().map(part), out);
    }

    fn queries(&self, q: &mut [f32]) -> Vec<Query> {
        q.chunks_exact_mut(self.shape.head_size).map(Query::new::<I>).collect()
    }
}
