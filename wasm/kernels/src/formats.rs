//! The ggml tensor formats that models come in, decoded 32 elements at a time into the one shape that
//! the rest of the crate computes with: small integers, and a scale and a minimum for each 16.
//! Layouts: the ggml quantisation types, ids as in the GGUF specification.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Format {
    /// The format with this GGUF id.
    pub fn from_id(id: u32) -> Option<Format> {
        Some(match id {
            0 => Format::F32,
            1 => Format::F16,
            2 => Format::Q4_0,
            3 => Format::Q4_1,
            6 => Format::Q5_0,
            7 => Format::Q5_1,
            8 => Format::Q8_0,
            12 => Format::Q4K,
            13 => Format::Q5K,
            14 => Format::Q6K,
            30 => Format::Bf16,
            _ => return None,
        })
    }

    /// Elements in a block, and bytes that hold them.
    pub const fn block(self) -> (usize, usize) {
        match self {
            Format::F32 => (1, 4),
            Format::F16 | Format::Bf16 => (1, 2),
            Format::Q4_0 => (32, 18),
            Format::Q4_1 => (32, 20),
            Format::Q5_0 => (32, 22),
            Format::Q5_1 => (32, 24),
            Format::Q8_0 => (32, 34),
            Format::Q4K => (256, 144),
            Format::Q5K => (256, 176),
            Format::Q6K => (256, 210),
        }
    }

    pub const fn row_bytes(self, columns: usize) -> usize {
        let (elements, bytes) = self.block();
        columns / elements * bytes
    }
}

/// 32 consecutive elements of a row: element i is `scale[i / 16] * q[i] + min[i / 16]`.
#[derive(Clone, Copy)]
pub struct Group {
    pub q: [i8; 32],
    pub scale: [f32; 2],
    pub min: [f32; 2],
}

/// Decodes elements `32 * index ..` of a row in a quantised format.
pub fn decode_group(format: Format, row: &[u8], index: usize) -> Group {
    let (elements, bytes) = format.block();
    let block = &row[index * 32 / elements * bytes..][..bytes];
    let part = index % (elements / 32);
    match format {
        Format::Q4_0 => {
            let d = f16_at(block, 0);
            uniform(nibbles(&block[2..18]), d, -8.0 * d)
        }
        Format::Q4_1 => uniform(nibbles(&block[4..20]), f16_at(block, 0), f16_at(block, 2)),
        Format::Q5_0 => {
            let d = f16_at(block, 0);
            uniform(with_fifth_bit(nibbles(&block[6..22]), &block[2..6]), d, -16.0 * d)
        }
        Format::Q5_1 => {
            let q = with_fifth_bit(nibbles(&block[8..24]), &block[4..8]);
            uniform(q, f16_at(block, 0), f16_at(block, 2))
        }
        Format::Q8_0 => {
            let mut q = [0; 32];
            for (q, byte) in q.iter_mut().zip(&block[2..34]) {
                *q = *byte as i8;
            }
            uniform(q, f16_at(block, 0), 0.0)
        }
        Format::Q4K => {
            let q = half_bytes(&block[16 + part / 2 * 32..][..32], part % 2);
            k_uniform(q, block, part)
        }
        Format::Q5K => {
            let mut q = half_bytes(&block[48 + part / 2 * 32..][..32], part % 2);
            for (q, high) in q.iter_mut().zip(&block[16..48]) {
                *q |= ((high >> part & 1) << 4) as i8;
            }
            k_uniform(q, block, part)
        }
        Format::Q6K => decode_q6k(block, part),
        Format::F32 | Format::F16 | Format::Bf16 => unreachable!("a float format has no groups"),
    }
}

fn uniform(q: [i8; 32], scale: f32, min: f32) -> Group {
    Group { q, scale: [scale; 2], min: [min; 2] }
}

/// Q4_K and Q5_K: 6-bit scales and minima of the eight parts, packed in bytes 4 to 16.
fn k_uniform(q: [i8; 32], block: &[u8], part: usize) -> Group {
    let s = &block[4..16];
    let (scale, min) = if part < 4 {
        (s[part] & 63, s[part + 4] & 63)
    } else {
        let low = s[part + 4];
        (low & 15 | s[part - 4] >> 6 << 4, low >> 4 | s[part] >> 6 << 4)
    };
    uniform(q, f16_at(block, 0) * scale as f32, -(f16_at(block, 2) * min as f32))
}

/// Q6_K: 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, a half.
fn decode_q6k(block: &[u8], part: usize) -> Group {
    let (half, quarter) = (part / 4, part % 4);
    let low = &block[64 * half + 32 * (quarter % 2)..][..32];
    let high = &block[128 + 32 * half..][..32];
    let mut q = [0; 32];
    for i in 0..32 {
        let nibble = if quarter < 2 { low[i] & 15 } else { low[i] >> 4 };
        q[i] = (nibble | (high[i] >> (2 * quarter) & 3) << 4) as i8;
    }
    let d = f16_at(block, 208);
    let scale = [0, 1].map(|i| d * block[192 + 2 * part + i] as i8 as f32);
    Group { q, scale, min: scale.map(|s| -32.0 * s) }
}

/// 16 bytes: low nibbles are elements 0 to 15, high nibbles 16 to 31.
fn nibbles(bytes: &[u8]) -> [i8; 32] {
    core::array::from_fn(|i| (bytes[i % 16] >> (i / 16 * 4) & 15) as i8)
}

/// 32 bytes: one nibble of each, low for half 0.
fn half_bytes(bytes: &[u8], half: usize) -> [i8; 32] {
    core::array::from_fn(|i| (bytes[i] >> (half * 4) & 15) as i8)
}

fn with_fifth_bit(mut q: [i8; 32], bits: &[u8]) -> [i8; 32] {
    for (i, q) in q.iter_mut().enumerate() {
        *q |= ((bits[i / 8] >> (i % 8) & 1) << 4) as i8;
    }
    q
}

/// Element `index` of a row in a float format.
pub fn float_at(format: Format, row: &[u8], index: usize) -> f32 {
    match format {
        Format::F16 => f16_at(row, 2 * index),
        Format::Bf16 => f32::from_bits((u16_at(row, 2 * index) as u32) << 16),
        _ => f32::from_le_bytes(row[4 * index..4 * index + 4].try_into().unwrap()),
    }
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

pub fn f16_at(bytes: &[u8], offset: usize) -> f32 {
    f16_to_f32(u16_at(bytes, offset))
}

/// The half that is exactly this number, if there is one and it is finite.
pub fn f16_of(x: f32) -> Option<u16> {
    let sign = (x.to_bits() >> 16) as u16 & 0x8000;
    // The inverse of what `f16_to_f32` does: dividing by 2^112 moves the exponent.
    let half = sign | ((x.abs() * f32::from_bits(15 << 23)).to_bits() >> 13) as u16 & 0x7fff;
    (x.is_finite() && f16_to_f32(half).to_bits() == x.to_bits()).then_some(half)
}

/// IEEE half to single, exact. Multiplying by 2^112 moves the exponent and makes denormals normal.
pub fn f16_to_f32(half: u16) -> f32 {
    let magnitude = f32::from_bits(((half & 0x7fff) as u32) << 13) * f32::from_bits(239 << 23);
    let wide = if half & 0x7c00 == 0x7c00 {
        f32::from_bits(0x7f80_0000 | ((half & 0x3ff) as u32) << 13)
    } else {
        magnitude
    };
    if half & 0x8000 != 0 { -wide } else { wide }
}
