//! The reference that every kernel is held against: the same arithmetic on the file's own bytes, one
//! element at a time, without repacking and without SIMD. Integer dots are exact and floats are summed
//! in the order that `matmul` documents, so the kernels must agree to the last bit.

use crate::activations::TINY;
use crate::formats::{Format, decode_group, float_at};

/// A token's 32 activations: int8 values and their scale.
struct Block {
    values: [i32; 32],
    scale: f32,
}

fn quantize(x: &[f32]) -> Block {
    let peak = f32::from_bits(x.iter().map(|x| x.abs().to_bits()).max().unwrap());
    let (scale, inverse) = if peak < TINY { (0.0, 0.0) } else { (peak / 127.0, 127.0 / peak) };
    Block { values: core::array::from_fn(|i| (x[i] * inverse).round_ties_even() as i32), scale }
}

/// One row of weights, as in the file, times one token's activations.
pub fn dot(format: Format, row: &[u8], x: &[f32]) -> f32 {
    match format {
        Format::F32 | Format::F16 | Format::Bf16 => {
            x.iter().enumerate().fold(0.0, |sum, (i, x)| sum + float_at(format, row, i) * x)
        }
        _ => x
            .chunks_exact(32)
            .enumerate()
            .fold(0.0, |sum, (index, x)| add_block(sum, format, row, index, &quantize(x))),
    }
}

/// The same with activations of 16 bits: the product of what 8 bits hold, and that of what they leave.
pub fn double_dot(format: Format, row: &[u8], x: &[f32]) -> f32 {
    if matches!(format, Format::F32 | Format::F16 | Format::Bf16) {
        return dot(format, row, x);
    }
    let left: Vec<f32> = x.chunks_exact(32).flat_map(left_over).collect();
    dot(format, row, x) + dot(format, row, &left)
}

/// What 8 bits leave of 32 activations.
fn left_over(x: &[f32]) -> impl Iterator<Item = f32> {
    let Block { values, scale } = quantize(x);
    x.iter().zip(values).map(move |(x, value)| x - value as f32 * scale)
}

fn add_block(sum: f32, format: Format, row: &[u8], index: usize, x: &Block) -> f32 {
    let group = decode_group(format, row, index);
    let halves = match format {
        // It has a scale for each 16 columns.
        Format::Q6K => vec![0..16, 16..32],
        _ => vec![0..32],
    };
    halves.into_iter().enumerate().fold(sum, |sum, (half, part)| {
        let dot: i32 = part.clone().map(|i| group.q[i] as i32 * x.values[i]).sum();
        let total: i32 = part.map(|i| x.values[i]).sum();
        let sum = sum + (dot as f32 * group.scale[half]) * x.scale;
        if format == Format::Q8_0 { sum } else { sum + group.min[half] * (x.scale * total as f32) }
    })
}
