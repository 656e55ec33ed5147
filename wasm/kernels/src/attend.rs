//! A layer's attention over the paged cache: keys and values go in, then each token attends to all
//! blocks of its sequence, or to those that its plan chooses.

use crate::attention_q8::{HEADS, PART, Partial, join};
use crate::batch::{Batch, Token};
use crate::buffer::Buffer;
use crate::cache::{BLOCK, KvType};
use crate::isa::Isa;
use crate::model::Model;
use crate::moments::Moments;
use crate::records::Records;
use crate::rope::rotate;
use crate::scan::{Codes, add_shares};
use crate::selection::choose;
use crate::sketch::Sketch;
use crate::{attention_f32, attention_q8};
use core::ops::Range;
use std::borrow::Cow;

/// Query heads of one token that share a KV head: all of a group, or some.
#[derive(Clone, PartialEq)]
struct Heads {
    /// The token's row.
    row: usize,
    kv_head: usize,
    range: Range<usize>,
}

impl Heads {
    /// At most `HEADS` each.
    fn chunks(self) -> impl Iterator<Item = Heads> {
        let Heads { row, kv_head, range: Range { start, end } } = self;
        (start..end).step_by(HEADS).map(move |first| Heads {
            row,
            kv_head,
            range: first..(first + HEADS).min(end),
        })
    }
}

/// Blocks that heads attend to, all but the last of them full.
struct Context<'a> {
    blocks: Cow<'a, [u32]>,
    tokens: usize,
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
        let mut angles = vec![0.0; self.rope.dimensions()];
        for (i, token) in tokens.iter().enumerate() {
            self.rope.angles(token.position * moments.stretch, &mut angles);
            let (keys, queries) = unsafe { (s.key.row(i), s.query.row(i)) };
            for head in keys.chunks_exact_mut(size).chain(queries.chunks_exact_mut(size)) {
                rotate(&mut head[..angles.len()], &angles);
            }
            let groups = queries.chunks_exact(self.group() * size);
            for (head, (key, queries)) in keys.chunks_exact(size).zip(groups).enumerate() {
                moments.add(layer, head, key, queries.chunks_exact(size));
            }
        }
        moments.tokens += if layer == 0 { tokens.len() } else { 0 };
    }

    /// Attention of every token, group by group of the heads that share a KV head. Groups that are too
    /// few to keep all threads at work are cut: into heads, or into parts of a long context.
    pub fn attend(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
        let groups = tokens.len() * self.shape.kv_heads;
        let threads = self.pool.threads();
        let few = threads > 1 && groups < 4 * threads;
        let long = |token: &Token| token.position >= PART * BLOCK;
        if few && self.cache.kind == KvType::Q8 && tokens.iter().any(long) {
            return self.attend_in_parts(layer, batch, tokens);
        }
        // A choice of blocks is made for the whole group.
        let chooses = |token: &Token| !token.plan.reads_all(batch.attended(token).len());
        let cut = few && !tokens.iter().any(chooses);
        let unit = if cut { 1 } else { self.group() };
        self.pool.run(groups * self.group() / unit, &|units| {
            for heads in self.heads_of(units.start * unit..units.end * unit) {
                let context = self.context(layer, batch, &tokens[heads.row], &heads);
                self.attend_context(layer, &heads, &context);
            }
        });
    }

    /// The same, to the bit.
    fn attend_in_parts(&self, layer: usize, batch: &Batch, tokens: &[Token]) {
        let groups: Vec<Heads> = self.heads_of(0..tokens.len() * self.shape.heads).collect();
        let contexts = self
            .pool
            .map(groups.len(), |i| self.context(layer, batch, &tokens[groups[i].row], &groups[i]));
        let parts: Vec<(Heads, Records)> = groups
            .into_iter()
            .zip(&contexts)
            .flat_map(|(group, context)| group.chunks().map(move |heads| (heads, context)))
            .flat_map(|(heads, context)| {
                let records = self.records(layer, &heads, context);
                records.parts(PART).map(move |part| (heads.clone(), part))
            })
            .collect();
        let partials = self.pool.map(parts.len(), |i| {
            let (heads, part) = &parts[i];
            let q = self.part(&self.scratch.query, heads);
            unsafe { Partial::of::<I>(q, self.shape.head_size, *part, vec![0.0; q.len()]) }
        });
        let mut partials = partials.into_iter();
        for context in parts.chunk_by(|(a, _), (b, _)| a == b) {
            join(
                partials.by_ref().take(context.len()),
                self.part(&self.scratch.attended, &context[0].0),
            );
        }
    }

    /// Query heads that share a KV head.
    fn group(&self) -> usize {
        self.shape.heads / self.shape.kv_heads
    }

    /// Splits a range of [tokens][heads] at the bounds of groups.
    fn heads_of(&self, range: Range<usize>) -> impl Iterator<Item = Heads> {
        let (heads, group, mut next) = (self.shape.heads, self.group(), range.start);
        core::iter::from_fn(move || {
            let (row, first) = (next / heads, next % heads);
            let end = (first - first % group + group).min(first + range.end - next);
            let some = next < range.end;
            next += end - first;
            some.then_some(Heads { row, kv_head: first / group, range: first..end })
        })
    }

    /// Their part of [tokens][heads * head size].
    #[allow(clippy::mut_from_ref)]
    fn part<'a>(&self, rows: &'a Buffer, heads: &Heads) -> &'a mut [f32] {
        let size = self.shape.head_size;
        let row = unsafe { rows.row(heads.row) };
        &mut row[heads.range.start * size..heads.range.end * size]
    }

    fn records<'a>(&self, layer: usize, heads: &Heads, context: &'a Context) -> Records<'a> {
        self.cache.records(layer, heads.kv_head, &context.blocks, context.tokens)
    }

    /// Rotates the queries, and chooses what they attend to.
    fn context<'a>(
        &self,
        layer: usize,
        batch: &Batch<'a>,
        token: &Token,
        heads: &Heads,
    ) -> Context<'a> {
        let s = &self.scratch;
        let q = self.part(&self.scratch.query, heads);
        for q in q.chunks_exact_mut(self.shape.head_size) {
            rotate(&mut q[..self.rope.dimensions()], unsafe { s.angles.row(heads.row) });
        }
        let all = batch.attended(token);
        let (blocks, dropped) = match &self.sketch {
            Some(sketch) if !token.plan.reads_all(all.len()) => {
                let shares = self.block_shares(sketch, layer, heads.kv_head, all, token, q);
                let mut chosen = Vec::with_capacity(all.len());
                let dropped = choose(token.plan, &shares, &mut chosen);
                (Cow::Owned(chosen.into_iter().map(|i| all[i]).collect()), dropped)
            }
            _ => (Cow::Borrowed(all), 0.0),
        };
        // A group's first head counts.
        if heads.range.start % self.group() == 0 {
            let counters = unsafe { s.attention.row(token.index) };
            counters[2 * heads.kv_head] += blocks.len() as f32;
            counters[2 * heads.kv_head + 1] += dropped;
        }
        // Of the chosen blocks all but the last are full.
        let tokens = (blocks.len() - 1) * BLOCK + token.position % BLOCK + 1;
        Context { blocks, tokens }
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

    /// Exact attention of rotated queries.
    fn attend_context(&self, layer: usize, heads: &Heads, context: &Context) {
        let size = self.shape.head_size;
        let records = self.records(layer, heads, context);
        let q = self.part(&self.scratch.query, heads);
        let out = self.part(&self.scratch.attended, heads);
        for (q, out) in q.chunks(HEADS * size).zip(out.chunks_mut(HEADS * size)) {
            match self.cache.kind {
                KvType::F32 => unsafe { attention_f32::attend(q, size, records, out) },
                KvType::Q8 => unsafe { attention_q8::attend::<I>(q, size, records, out) },
            }
        }
    }
}
