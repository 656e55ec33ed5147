//! A model's shape and its tensors, filled slot by slot while the file streams in.

use crate::formats::{Format, float_at};
use crate::isa::Isa;
use crate::matrix::Matrix;

#[derive(Clone, Copy)]
pub struct Shape {
    pub layers: usize,
    pub hidden: usize,
    pub feed_forward: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    pub vocabulary: usize,
    pub epsilon: f32,
}

/// Which tensor of a layer, or of the model; the numbers are the loader's.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Slot {
    Embedding,
    OutputNorm,
    Output,
    RopeDivisors,
    AttentionNorm,
    FeedForwardNorm,
    Query,
    Key,
    Value,
    AttentionOutput,
    Gate,
    Up,
    Down,
}

impl Slot {
    pub fn from_id(id: u32) -> Option<Slot> {
        const ALL: [Slot; 13] = [
            Slot::Embedding,
            Slot::OutputNorm,
            Slot::Output,
            Slot::RopeDivisors,
            Slot::AttentionNorm,
            Slot::FeedForwardNorm,
            Slot::Query,
            Slot::Key,
            Slot::Value,
            Slot::AttentionOutput,
            Slot::Gate,
            Slot::Up,
            Slot::Down,
        ];
        ALL.get(id as usize).copied()
    }
}

enum Tensor {
    Missing,
    Vector(Vec<f32>),
    Matrix(Matrix),
}

pub struct Weights {
    tensors: Vec<Tensor>,
}

const SLOTS: usize = 13;

fn index(slot: Slot, layer: usize) -> usize {
    layer * SLOTS + slot as usize
}

impl Weights {
    pub fn new(layers: usize) -> Weights {
        Weights { tensors: (0..layers * SLOTS).map(|_| Tensor::Missing).collect() }
    }

    /// Makes room for a tensor; false when memory is exhausted. A single row is a vector.
    pub fn begin(
        &mut self,
        slot: Slot,
        layer: usize,
        format: Format,
        rows: usize,
        columns: usize,
    ) -> bool {
        let tensor = if rows == 1 {
            Tensor::Vector(Vec::with_capacity(columns))
        } else {
            match Matrix::new(format, rows, columns) {
                Some(matrix) => Tensor::Matrix(matrix),
                None => return false,
            }
        };
        self.tensors[index(slot, layer)] = tensor;
        true
    }

    /// Takes whole rows, as they lie in the file, from row `first` on. False where `Matrix::load` is.
    pub fn load<I: Isa>(
        &mut self,
        slot: Slot,
        layer: usize,
        format: Format,
        first: usize,
        bytes: &[u8],
    ) -> bool {
        match &mut self.tensors[index(slot, layer)] {
            Tensor::Matrix(matrix) => matrix.load::<I>(first, bytes),
            Tensor::Vector(vector) => {
                let elements = bytes.len() / format.row_bytes(1);
                vector.extend((0..elements).map(|i| float_at(format, bytes, i)));
                true
            }
            Tensor::Missing => unreachable!("a tensor is loaded after it was begun"),
        }
    }

    pub fn matrix(&self, slot: Slot, layer: usize) -> Option<&Matrix> {
        match &self.tensors[index(slot, layer)] {
            Tensor::Matrix(matrix) => Some(matrix),
            _ => None,
        }
    }

    pub fn vector(&self, slot: Slot, layer: usize) -> Option<&[f32]> {
        match &self.tensors[index(slot, layer)] {
            Tensor::Vector(vector) => Some(vector),
            _ => None,
        }
    }

    /// Bytes of all tensors as they lie in memory.
    pub fn bytes(&self) -> usize {
        self.tensors
            .iter()
            .map(|tensor| match tensor {
                Tensor::Matrix(matrix) => matrix.bytes(),
                Tensor::Vector(vector) => 4 * vector.len(),
                Tensor::Missing => 0,
            })
            .sum()
    }
}
