//! A weight matrix, repacked while it is loaded: four rows lie interleaved ("a quad"), so that the
//! four lanes of a vector are four rows and no kernel sums across lanes. Two quads make a band, which
//! is one unbroken stream for the hardware's prefetching: with a stream for each quad, decoding
//! waited for memory two thirds of the time. Formats fall into four packings. A band holds, in the
//! order of the columns, for the first and then the second quad:
//!
//! ```text
//! Nibble  32 columns: [4 vectors] low nibbles columns 0 to 15, high ones 16 to 31; [4] scale, [4] min
//! Byte    32 columns: [8 vectors] value + 128; [4] scale
//! Wide    16 columns: [4 vectors] 0 to 63; [4] scale, [4] min
//! Float    1 column:  [4] f32, f16 or bf16
//! ```
//!
//! Scales and minima are f32. A vector holds four columns of each row, ordered as `Isa` wants them.

use crate::formats::{Format, decode_group, f16_at, f16_to_f32, float_at};
use crate::isa::Isa;
use crate::memory::reserve;

/// Quads of a band.
pub const QUADS: usize = 2;
/// Rows of a band.
pub const BAND_ROWS: usize = 4 * QUADS;

/// Bytes of one quad's block.
pub const NIBBLE_BYTES: usize = 96;
pub const BYTE_BYTES: usize = 144;
pub const WIDE_BYTES: usize = 96;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Nibble,
    Byte,
    Wide,
    Float,
}

impl Packing {
    fn of(format: Format) -> Packing {
        match format {
            Format::Q4_0 | Format::Q4_1 | Format::Q4K => Packing::Nibble,
            Format::Q8_0 => Packing::Byte,
            Format::Q5_0 | Format::Q5_1 | Format::Q5K | Format::Q6K => Packing::Wide,
            Format::F32 | Format::F16 | Format::Bf16 => Packing::Float,
        }
    }
}

pub struct Matrix {
    pub format: Format,
    pub packing: Packing,
    pub rows: usize,
    pub columns: usize,
    data: *mut u8,
}

unsafe impl Send for Matrix {}
unsafe impl Sync for Matrix {}

impl Matrix {
    /// Reserves room; `None` when memory is exhausted.
    pub fn new(format: Format, rows: usize, columns: usize) -> Option<Matrix> {
        let mut matrix = Matrix {
            format,
            packing: Packing::of(format),
            rows,
            columns,
            data: core::ptr::null_mut(),
        };
        matrix.data = reserve(matrix.bytes());
        (!matrix.data.is_null()).then_some(matrix)
    }

    /// Bands of eight rows; the rows that the last one lacks are zero.
    pub fn bands(&self) -> usize {
        self.rows.div_ceil(BAND_ROWS)
    }

    /// Columns and bytes of one quad's block.
    fn block(&self) -> (usize, usize) {
        match self.packing {
            Packing::Nibble => (32, NIBBLE_BYTES),
            Packing::Byte => (32, BYTE_BYTES),
            Packing::Wide => (16, WIDE_BYTES),
            Packing::Float => (1, 4 * self.format.row_bytes(1)),
        }
    }

    fn band_bytes(&self) -> usize {
        let (columns, bytes) = self.block();
        self.columns / columns * bytes * QUADS
    }

    pub fn bytes(&self) -> usize {
        self.bands() * self.band_bytes()
    }

    pub fn band(&self, band: usize) -> *const u8 {
        unsafe { self.data.add(band * self.band_bytes()) }
    }

    /// The first block of the quad that row `row` is in; the next are `QUADS` blocks apart.
    fn quad(&self, row: usize) -> *mut u8 {
        let quad = row % BAND_ROWS / 4;
        unsafe { self.data.add(row / BAND_ROWS * self.band_bytes() + quad * self.block().1) }
    }

    /// Repacks whole rows as they lie in the file, from row `first` on.
    pub fn load<I: Isa>(&mut self, first: usize, bytes: &[u8]) {
        let row_bytes = self.format.row_bytes(self.columns);
        for (i, row) in bytes.chunks_exact(row_bytes).enumerate() {
            let (to, lane) = (self.quad(first + i), (first + i) % 4);
            match (self.packing, self.format) {
                (_, Format::Q4_1) => unsafe { pack_q4_1::<I>(row, to, lane) },
                (Packing::Nibble, _) => unsafe { self.pack_nibbles::<I>(row, to, lane) },
                (Packing::Byte, _) => unsafe { pack_q8_0::<I>(row, to, lane) },
                (Packing::Wide, _) => unsafe { self.pack_wide::<I>(row, to, lane) },
                (Packing::Float, _) => {
                    let size = self.format.row_bytes(1);
                    for (column, element) in row.chunks_exact(size).enumerate() {
                        let at = unsafe { to.add((BAND_ROWS * column + lane) * size) };
                        unsafe { at.copy_from_nonoverlapping(element.as_ptr(), size) };
                    }
                }
            }
        }
    }

    unsafe fn pack_nibbles<I: Isa>(&self, row: &[u8], to: *mut u8, lane: usize) {
        for block in 0..self.columns / 32 {
            let group = decode_group(self.format, row, block);
            unsafe {
                let to = to.add(block * QUADS * NIBBLE_BYTES);
                for v in 0..4 {
                    let q = |k: usize| (group.q[4 * v + k] | group.q[16 + 4 * v + k] << 4) as u8;
                    I::store_lane(to.add(16 * v), lane, core::array::from_fn(q));
                }
                store_scales(to.add(64), lane, group.scale[0], group.min[0]);
            }
        }
    }

    unsafe fn pack_wide<I: Isa>(&self, row: &[u8], to: *mut u8, lane: usize) {
        for block in 0..self.columns / 32 {
            let group = decode_group(self.format, row, block);
            for half in 0..2 {
                unsafe {
                    let to = to.add((2 * block + half) * QUADS * WIDE_BYTES);
                    for v in 0..4 {
                        let q = |k: usize| group.q[16 * half + 4 * v + k] as u8;
                        I::store_lane(to.add(16 * v), lane, core::array::from_fn(q));
                    }
                    store_scales(to.add(64), lane, group.scale[half], group.min[half]);
                }
            }
        }
    }

    /// Writes row `row` as floats.
    pub fn dequantize_row<I: Isa>(&self, row: usize, out: &mut [f32]) {
        let (quad, lane) = (self.quad(row).cast_const(), row % 4);
        let f32_at = |offset: usize| unsafe { *quad.add(offset).cast::<f32>().add(lane) };
        let lane_at = |offset: usize| unsafe { I::load_lane(quad.add(offset), lane) };
        for (column, out) in out.iter_mut().enumerate() {
            let (block, k) = (column / 32, column % 32);
            *out = match self.packing {
                Packing::Nibble => {
                    let at = block * QUADS * NIBBLE_BYTES;
                    let q = lane_at(at + 16 * (k % 16 / 4))[k % 4] >> (k / 16 * 4) & 15;
                    f32_at(at + 64) * q as f32 + f32_at(at + 80)
                }
                Packing::Byte => {
                    let at = block * QUADS * BYTE_BYTES;
                    let q = lane_at(at + 16 * (k / 4))[k % 4] as i32 - 128;
                    f32_at(at + 128) * q as f32
                }
                Packing::Wide => {
                    let at = (2 * block + k / 16) * QUADS * WIDE_BYTES;
                    let q = lane_at(at + 16 * (k % 16 / 4))[k % 4];
                    f32_at(at + 64) * q as f32 + f32_at(at + 80)
                }
                Packing::Float => {
                    let size = self.format.row_bytes(1);
                    let at = unsafe { quad.add((BAND_ROWS * column + lane) * size) };
                    float_at(self.format, unsafe { core::slice::from_raw_parts(at, size) }, 0)
                }
            };
        }
    }
}

unsafe fn store_scales(to: *mut u8, lane: usize, scale: f32, min: f32) {
    unsafe {
        *to.cast::<f32>().add(lane) = scale;
        *to.cast::<f32>().add(4 + lane) = min;
    }
}

/// Q4_1 keeps elements 0 to 15 in low nibbles and 16 to 31 in high ones, as the packing does.
unsafe fn pack_q4_1<I: Isa>(row: &[u8], to: *mut u8, lane: usize) {
    for (block, bytes) in row.chunks_exact(20).enumerate() {
        unsafe {
            let to = to.add(block * QUADS * NIBBLE_BYTES);
            for v in 0..4 {
                I::store_lane(
                    to.add(16 * v),
                    lane,
                    bytes[4 + 4 * v..8 + 4 * v].try_into().unwrap(),
                );
            }
            store_scales(to.add(64), lane, f16_at(bytes, 0), f16_at(bytes, 2));
        }
    }
}

unsafe fn pack_q8_0<I: Isa>(row: &[u8], to: *mut u8, lane: usize) {
    for (block, bytes) in row.chunks_exact(34).enumerate() {
        unsafe {
            let to = to.add(block * QUADS * BYTE_BYTES);
            for v in 0..8 {
                let word: [u8; 4] = bytes[2 + 4 * v..6 + 4 * v].try_into().unwrap();
                // Adding 128 to a signed byte flips its top bit.
                let biased = u32::from_le_bytes(word) ^ 0x8080_8080;
                I::store_lane(to.add(16 * v), lane, biased.to_le_bytes());
            }
            let scale = f16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]));
            *to.add(128).cast::<f32>().add(lane) = scale;
        }
    }
}
