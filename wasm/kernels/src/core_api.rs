//! The exported interface. Order of calls: `new Core`, `set_rope`, for each tensor `begin_tensor` and
//! `load_rows`, `finish`, then `forward` as often as wanted. Pointers are byte offsets into the memory.

use crate::Native;
use crate::activations::Precision;
use crate::batch::Batch;
use crate::cache::{Cache, KvType};
use crate::draw::{Draw, draw};
use crate::formats::Format;
use crate::model::Model;
use crate::moments::Moments;
use crate::pool::Pool;
use crate::rope::{Rope, Scaling};
use crate::scratch::Scratch;
use crate::sketch::{Sketch, SketchShape};
use crate::stats::tempered;
use crate::weights::{Shape, Slot, Weights};
use core::marker::PhantomData;
use wasm_bindgen::prelude::wasm_bindgen;

struct Loading {
    slot: Slot,
    layer: usize,
    format: Format,
}

#[wasm_bindgen]
pub struct Core {
    shape: Shape,
    rope: (f64, usize, Scaling),
    weights: Option<Weights>,
    loading: Option<Loading>,
    staging: Vec<u8>,
    input: Vec<u32>,
    end_tokens: Vec<u32>,
    /// What `tempered` found last.
    tempered: [f64; 2],
    model: Option<Model<Native>>,
}

#[wasm_bindgen]
impl Core {
    #[wasm_bindgen(constructor)]
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        layers: usize,
        hidden: usize,
        feed_forward: usize,
        heads: usize,
        kv_heads: usize,
        head_size: usize,
        vocabulary: usize,
        epsilon: f32,
    ) -> Core {
        let shape =
            Shape { layers, hidden, feed_forward, heads, kv_heads, head_size, vocabulary, epsilon };
        Core {
            shape,
            rope: (10000.0, head_size, Scaling::None),
            weights: Some(Weights::new(layers)),
            loading: None,
            staging: Vec::new(),
            input: Vec::new(),
            end_tokens: Vec::new(),
            tempered: [0.0; 2],
            model: None,
        }
    }

    /// `kind`: 0 none, 1 linear, 2 YaRN.
    #[allow(clippy::too_many_arguments)]
    pub fn set_rope(
        &mut self,
        base: f64,
        dimensions: usize,
        kind: u32,
        factor: f64,
        original_context: f64,
        attention: f64,
        beta_fast: f64,
        beta_slow: f64,
    ) {
        let scaling = match kind {
            0 => Scaling::None,
            1 => Scaling::Linear(factor),
            _ => Scaling::Yarn { factor, original_context, attention, beta_fast, beta_slow },
        };
        self.rope = (base, dimensions, scaling);
    }

    pub fn add_end_token(&mut self, id: u32) {
        self.end_tokens.push(id);
    }

    /// Where the host puts the file's bytes before `load_rows`.
    pub fn staging(&mut self, bytes: usize) -> *mut u8 {
        self.staging.resize(bytes, 0);
        self.staging.as_mut_ptr()
    }

    /// False when memory is exhausted. Slots are those of `weights::Slot`, formats GGUF's ids.
    pub fn begin_tensor(
        &mut self,
        slot: u32,
        layer: usize,
        format: u32,
        rows: usize,
        columns: usize,
    ) -> bool {
        let slot = Slot::from_id(slot).expect("a known slot");
        let format = Format::from_id(format).expect("a known format");
        self.loading = Some(Loading { slot, layer, format });
        self.weights_mut().begin(slot, layer, format, rows, columns)
    }

    /// Repacks `bytes` bytes of the staging area, whole rows from row `first` on. False where a scale or
    /// minimum cannot be kept.
    pub fn load_rows(&mut self, first: usize, bytes: usize) -> bool {
        let Loading { slot, layer, format } = *self.loading.as_ref().expect("a tensor was begun");
        let staging = core::mem::take(&mut self.staging);
        let good = self.weights_mut().load::<Native>(slot, layer, format, first, &staging[..bytes]);
        self.staging = staging;
        good
    }

    /// Bytes of a KV block over all layers.
    pub fn kv_block_bytes(&self, kv_type: u32) -> usize {
        let Shape { layers, kv_heads, head_size, .. } = self.shape;
        layers * kv_heads * KvType::from_id(kv_type).record_bytes(head_size)
    }

    /// Reserves cache and scratch; false when memory is exhausted. `kv_type`: 0 q8, 1 f32. `double`:
    /// activations of 16 bits instead of 8.
    #[allow(clippy::too_many_arguments)]
    pub fn finish(
        &mut self,
        double: bool,
        kv_type: u32,
        kv_blocks: usize,
        tokens: usize,
        output_rows: usize,
        top_k: usize,
        threads: usize,
    ) -> bool {
        self.staging = Vec::new();
        let (shape, weights) = (self.shape, self.weights.take().expect("finish is called once"));
        let (base, dimensions, scaling) = self.rope;
        let rope = Rope::new(base, dimensions, scaling, weights.vector(Slot::RopeDivisors, 0));
        let kind = KvType::from_id(kv_type);
        let cache = Cache::new(kind, kv_blocks, shape.layers, shape.kv_heads, shape.head_size);
        let precision = if double { Precision::Double } else { Precision::Single };
        let scratch =
            Scratch::new::<Native>(&shape, dimensions, precision, tokens, output_rows, top_k);
        let (Some(cache), Some(scratch)) = (cache, scratch) else {
            return false;
        };
        self.model = Some(Model {
            shape,
            precision,
            weights,
            rope,
            cache,
            sketch: None,
            moments: None,
            scratch,
            pool: Pool::new(threads),
            end_tokens: core::mem::take(&mut self.end_tokens),
            isa: PhantomData,
        });
        true
    }

    /// Where the host writes a batch of this many words.
    pub fn input(&mut self, words: usize) -> *mut u32 {
        if self.input.len() < words {
            self.input.resize(words, 0);
        }
        self.input.as_mut_ptr()
    }

    pub fn forward(&mut self, sequences: usize) {
        let batch = Batch::parse(&self.input, sequences);
        self.model.as_mut().expect("finish was called").forward(&batch);
    }

    /// [rows][5] f64: max, log Z, entropy, varentropy, end probability.
    pub fn stats_pointer(&self) -> *const f32 {
        self.model().scratch.stats.data
    }

    /// [rows][top k] u32
    pub fn top_ids_pointer(&self) -> *const f32 {
        self.model().scratch.top_ids.data
    }

    /// [rows][top k] f32
    pub fn top_logits_pointer(&self) -> *const f32 {
        self.model().scratch.top_logits.data
    }

    /// [vocabulary] f32
    pub fn logits_pointer(&self, row: usize) -> *const f32 {
        let logits = &self.model().scratch.logits;
        unsafe { logits.data.add(row * logits.width) }
    }

    /// Entropy and varentropy of an output row at a temperature above 0.
    pub fn tempered(&mut self, row: usize, temperature: f32) -> *const f64 {
        let vocabulary = self.shape.vocabulary;
        let logits = unsafe { &self.model().scratch.logits.row(row)[..vocabulary] };
        let (entropy, varentropy) = tempered(logits, temperature);
        self.tempered = [entropy, varentropy];
        self.tempered.as_ptr()
    }

    /// Draws a token from an output row in which the staging area's `overrides` replace logits: so many
    /// ids, then as many logits. `u32::MAX` where no token is possible.
    #[allow(clippy::too_many_arguments)]
    pub fn draw(
        &mut self,
        row: usize,
        overrides: usize,
        top_k: usize,
        top_p: f64,
        min_p: f64,
        temperature: f64,
        u: f64,
    ) -> u32 {
        let staging = core::mem::take(&mut self.staging);
        let words = staging.chunks_exact(4).map(|x| u32::from_le_bytes([x[0], x[1], x[2], x[3]]));
        let words: Vec<u32> = words.take(2 * overrides).collect();
        self.staging = staging;
        let (ids, given) = words.split_at(overrides);

        let vocabulary = self.shape.vocabulary;
        let logits = unsafe { &mut self.model().scratch.logits.row(row)[..vocabulary] };
        let before: Vec<f32> = ids.iter().map(|&id| logits[id as usize]).collect();
        for (&id, &logit) in ids.iter().zip(given) {
            logits[id as usize] = f32::from_bits(logit);
        }
        let token = draw(logits, &Draw { top_k, top_p, min_p, temperature, u });
        for (&id, logit) in ids.iter().zip(before) {
            logits[id as usize] = logit;
        }
        token.unwrap_or(u32::MAX)
    }

    /// Of the latest step, [tokens][KV heads][2] f32: blocks read, and the share of the attention left
    /// out, summed over layers.
    pub fn attention_pointer(&self) -> *const f32 {
        self.model().scratch.attention.data
    }

    /// Starts gathering moments afresh, at so many times the tokens' positions; with 0 ends it and
    /// drops them.
    pub fn gather(&mut self, stretch: usize) {
        let Shape { layers, kv_heads, head_size, .. } = self.shape;
        self.model_mut().moments =
            (stretch > 0).then(|| Moments::new(layers, kv_heads, head_size, stretch));
    }

    /// Tokens that were gathered.
    pub fn moments_tokens(&self) -> usize {
        self.model().moments.as_ref().map_or(0, |moments| moments.tokens)
    }

    /// `Moments::sums`, while gathering.
    pub fn moments_pointer(&self) -> *const f32 {
        self.model().moments.as_ref().map_or(core::ptr::null(), |moments| moments.sums.as_ptr())
    }

    /// Takes the maps of a `KeySketch` from the staging area: key map, key offset, query map. With 0
    /// dimensions it drops the sketch. False when memory is exhausted.
    pub fn use_sketch(&mut self, dimensions: usize) -> bool {
        let Shape { layers, kv_heads, head_size, .. } = self.shape;
        let staging = core::mem::take(&mut self.staging);
        let model = self.model_mut();
        let blocks = model.cache.blocks;
        let shape = SketchShape { layers, kv_heads, head_size, blocks, dimensions };
        let floats = staging.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
        let given: Vec<f32> = floats.take(shape.given()).collect();
        match &mut model.sketch {
            _ if dimensions == 0 => model.sketch = None,
            Some(sketch) if sketch.shape == shape => sketch.set(&given),
            sketch => *sketch = Sketch::new(shape, &given),
        }
        dimensions == 0 || model.sketch.is_some()
    }

    /// Bytes of a block's sketch over all layers and heads; 0 without one.
    pub fn sketch_block_bytes(&self) -> usize {
        self.model().sketch_block_bytes()
    }

    pub fn copy_block(&self, from: usize, to: usize) {
        self.model().copy_block(from, to);
    }

    /// Gathers a block's content in the staging area: records, then codes.
    pub fn read_block(&mut self, block: usize) -> *const u8 {
        let bytes = self.model().cache.block_bytes() + self.model().sketch_block_bytes();
        let out = self.staging(bytes);
        unsafe { self.model().read_block(block, out) };
        out
    }

    /// Puts the staging area's content back in a block.
    pub fn write_block(&self, block: usize) {
        unsafe { self.model().write_block(block, self.staging.as_ptr()) };
    }

    pub fn weight_bytes(&self) -> usize {
        self.model().weights.bytes()
    }

    /// The team that workers serve; 0 where the core works alone.
    #[cfg(target_feature = "atomics")]
    pub fn team(&self) -> *const crate::team::Team {
        self.model().pool.team()
    }

    fn model(&self) -> &Model<Native> {
        self.model.as_ref().expect("finish was called")
    }

    fn model_mut(&mut self) -> &mut Model<Native> {
        self.model.as_mut().expect("finish was called")
    }

    fn weights_mut(&mut self) -> &mut Weights {
        self.weights.as_mut().expect("finish was not called yet")
    }
}
