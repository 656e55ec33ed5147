//! A weight matrix, repacked while it is loaded: four rows lie interleaved ("a quad"), so that the
//! four lanes of a vector are four rows and no kernel sums across lanes. Two quads make a band, which
//! is one unbroken stream for the hardware's prefetching: with a stream for each quad, decoding
//! waited for memory two thirds of the time. A band holds, in the order of the columns, for the first
//! and then the second quad:
//!
//! ```text
//! Nibble  32 columns: [4 vectors] low nibbles columns 0 to 15, high ones 16 to 31; scales, minima
//! Five    32 columns: [4] as Nibble; [1] bit v of a byte is the fifth bit of vector v's low nibble,
//!         bit 4 + v that of its high one; scales, minima
//! Six     16 columns: [4] 0 to 63; scales, minima
//! Float    1 column:  [4] f32, f16 or bf16
//! Byte    32 columns: [8] value + 128 of the first quad, [8] of the second; scales of both
//! ```
//!
//! Scales and minima are halves where they are so in the file, else f32. A vector holds four columns of
//! each row, ordered as `Isa` wants them.

use crate::formats::{Format, Group, decode_group, f16_at, f16_of, f16_to_f32, float_at};
use crate::isa::Isa;
use crate::memory::reserve;

/// Quads of a band.
pub const QUADS: usize = 2;
/// Rows of a band.
pub const BAND_ROWS: usize = 4 * QUADS;

/// How scales and minima are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    Half,
    Single,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Nibble(Scales),
    Five(Scales),
    Six,
    Byte,
    Float,
}

/// Bytes of one quad's block of `Nibble` or `Five`.
pub const fn nibble_bytes(fifth: bool, half: bool) -> usize {
    64 + if fifth { 16 } else { 0 } + if half { 16 } else { 32 }
}
pub const SIX_BYTES: usize = 96;
/// Bytes of the scales of both quads come after those of the first and the second.
pub const BYTE_BYTES: usize = 128;
pub const BYTE_SCALES: usize = 16;

impl Packing {
    fn of(format: Format) -> Packing {
        match format {
            Format::Q4_0 | Format::Q4_1 => Packing::Nibble(Scales::Half),
            Format::Q4K => Packing::Nibble(Scales::Single),
            Format::Q5_0 | Format::Q5_1 => Packing::Five(Scales::Half),
            Format::Q5K => Packing::Five(Scales::Single),
            Format::Q6K => Packing::Six,
            Format::Q8_0 => Packing::Byte,
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

    /// Columns of a block, and its bytes over both quads.
    fn block(&self) -> (usize, usize) {
        match self.packing {
            Packing::Nibble(scales) => (32, QUADS * nibble_bytes(false, scales == Scales::Half)),
            Packing::Five(scales) => (32, QUADS * nibble_bytes(true, scales == Scales::Half)),
            Packing::Six => (16, QUADS * SIX_BYTES),
            Packing::Byte => (32, QUADS * BYTE_BYTES + BYTE_SCALES),
            Packing::Float => (1, BAND_ROWS * self.format.row_bytes(1)),
        }
    }

    fn band_bytes(&self) -> usize {
        let (columns, bytes) = self.block();
        self.columns / columns * bytes
    }

    pub fn bytes(&self) -> usize {
        self.bands() * self.band_bytes()
    }

    pub fn band(&self, band: usize) -> *const u8 {
        unsafe { self.data.add(band * self.band_bytes()) }
    }

    /// The blocks of the band that row `row` is in, its quad there and its lane.
    fn place(&self, row: usize) -> (*mut u8, usize, usize) {
        let band = unsafe { self.data.add(row / BAND_ROWS * self.band_bytes()) };
        (band, row % BAND_ROWS / 4, row % 4)
    }

    /// Repacks whole rows as they lie in the file, from row `first` on. False where a scale or minimum
    /// is not finite, or beyond what a half holds.
    #[must_use]
    pub fn load<I: Isa>(&mut self, first: usize, bytes: &[u8]) -> bool {
        let row_bytes = self.format.row_bytes(self.columns);
        let rows = bytes.chunks_exact(row_bytes).enumerate();
        rows.fold(true, |good, (i, row)| good & unsafe { self.load_row::<I>(first + i, row) })
    }

    unsafe fn load_row<I: Isa>(&self, row: usize, bytes: &[u8]) -> bool {
        let (band, quad, lane) = self.place(row);
        let (columns, block_bytes) = self.block();
        let mut good = true;
        for block in 0..self.columns / columns {
            let to = unsafe { band.add(block * block_bytes) };
            let group = || decode_group(self.format, bytes, block);
            good &= unsafe {
                match self.packing {
                    Packing::Nibble(_) if self.format == Format::Q4_1 => {
                        let to = to.add(quad * block_bytes / QUADS);
                        pack_q4_1::<I>(&bytes[20 * block..][..20], to, lane)
                    }
                    Packing::Nibble(scales) => {
                        let (group, to) = (group(), to.add(quad * block_bytes / QUADS));
                        pack_nibbles::<I>(&group, to, lane);
                        store_scales(scales, to.add(64), lane, &group, 0)
                    }
                    Packing::Five(scales) => {
                        let (group, to) = (group(), to.add(quad * block_bytes / QUADS));
                        pack_nibbles::<I>(&group, to, lane);
                        pack_fifth_bits::<I>(&group, to.add(64), lane);
                        store_scales(scales, to.add(80), lane, &group, 0)
                    }
                    Packing::Six => {
                        let group = decode_group(self.format, bytes, block / 2);
                        pack_six::<I>(&group, block % 2, to.add(quad * SIX_BYTES), lane)
                    }
                    Packing::Byte => pack_q8_0::<I>(&bytes[34 * block..][..34], to, quad, lane),
                    Packing::Float => {
                        let size = self.format.row_bytes(1);
                        let element = bytes[size * block..].as_ptr();
                        to.add((4 * quad + lane) * size).copy_from_nonoverlapping(element, size);
                        true
                    }
                }
            };
        }
        good
    }

    /// Writes row `row` as floats.
    pub fn dequantize_row<I: Isa>(&self, row: usize, out: &mut [f32]) {
        let (band, quad, lane) = self.place(row);
        let (columns, block_bytes) = self.block();
        for (column, out) in out.iter_mut().enumerate() {
            let k = column % 32;
            let block = unsafe { band.add(column / columns * block_bytes) };
            let own = unsafe { block.add(quad * block_bytes / QUADS) };
            let lanes = |at: *const u8| unsafe { I::load_lane(at, lane) };
            // Of `Nibble` and `Five`: vector, byte in the lane, and whether the high nibble.
            let (v, high) = (k % 16 / 4, k / 16);
            let nibble = || lanes(unsafe { own.add(16 * v) })[k % 4] >> (4 * high) & 15;
            *out = unsafe {
                match self.packing {
                    Packing::Nibble(scales) => scaled(scales, own.add(64), lane, nibble()),
                    Packing::Five(scales) => {
                        let bits = lanes(own.add(64))[k % 4];
                        let fifth = bits >> (4 * high + v) & 1;
                        scaled(scales, own.add(80), lane, nibble() | fifth << 4)
                    }
                    Packing::Six => {
                        let own = block.add(quad * SIX_BYTES);
                        scaled(Scales::Single, own.add(64), lane, lanes(own.add(16 * v))[k % 4])
                    }
                    Packing::Byte => {
                        let q = lanes(block.add(quad * BYTE_BYTES + 16 * (k / 4)))[k % 4];
                        half_at(block.add(QUADS * BYTE_BYTES), 4 * quad + lane) * (q as f32 - 128.0)
                    }
                    Packing::Float => {
                        let size = self.format.row_bytes(1);
                        let at = block.add((4 * quad + lane) * size);
                        float_at(self.format, core::slice::from_raw_parts(at, size), 0)
                    }
                }
            };
        }
    }
}

/// Elements 0 to 15 in low nibbles and 16 to 31 in high ones.
unsafe fn pack_nibbles<I: Isa>(group: &Group, to: *mut u8, lane: usize) {
    for v in 0..4 {
        let q = |k: usize| {
            let (low, high) = (group.q[4 * v + k], group.q[16 + 4 * v + k]);
            (low & 15 | (high & 15) << 4) as u8
        };
        unsafe { I::store_lane(to.add(16 * v), lane, core::array::from_fn(q)) };
    }
}

unsafe fn pack_fifth_bits<I: Isa>(group: &Group, to: *mut u8, lane: usize) {
    let bits = |k: usize| (0..8).fold(0, |bits, v| bits | (group.q[4 * v + k] as u8 >> 4 & 1) << v);
    unsafe { I::store_lane(to, lane, core::array::from_fn(bits)) };
}

unsafe fn pack_six<I: Isa>(group: &Group, half: usize, to: *mut u8, lane: usize) -> bool {
    for v in 0..4 {
        let q = |k: usize| group.q[16 * half + 4 * v + k] as u8;
        unsafe { I::store_lane(to.add(16 * v), lane, core::array::from_fn(q)) };
    }
    unsafe { store_scales(Scales::Single, to.add(64), lane, group, half) }
}

/// Four scales, then four minima. False where one cannot be kept.
unsafe fn store_scales(
    scales: Scales,
    to: *mut u8,
    lane: usize,
    group: &Group,
    half: usize,
) -> bool {
    let (scale, min) = (group.scale[half], group.min[half]);
    match scales {
        Scales::Half => {
            let (s, m) = (f16_of(scale), f16_of(min));
            unsafe {
                *to.cast::<u16>().add(lane) = s.unwrap_or(0);
                *to.cast::<u16>().add(4 + lane) = m.unwrap_or(0);
            }
            s.is_some() && m.is_some()
        }
        Scales::Single => unsafe { store_singles(to, lane, scale, min) },
    }
}

unsafe fn store_singles(to: *mut u8, lane: usize, scale: f32, min: f32) -> bool {
    unsafe {
        *to.cast::<f32>().add(lane) = scale;
        *to.cast::<f32>().add(4 + lane) = min;
    }
    scale.is_finite() && min.is_finite()
}

/// `scale * q + min`
unsafe fn scaled(scales: Scales, at: *const u8, lane: usize, q: u8) -> f32 {
    let (scale, min) = unsafe {
        match scales {
            Scales::Half => (half_at(at, lane), half_at(at, 4 + lane)),
            Scales::Single => (*at.cast::<f32>().add(lane), *at.cast::<f32>().add(4 + lane)),
        }
    };
    scale * q as f32 + min
}

unsafe fn half_at(at: *const u8, index: usize) -> f32 {
    f16_to_f32(unsafe { *at.cast::<u16>().add(index) })
}

/// Q4_1 keeps its nibbles as the packing does.
unsafe fn pack_q4_1<I: Isa>(bytes: &[u8], to: *mut u8, lane: usize) -> bool {
    unsafe {
        for v in 0..4 {
            I::store_lane(to.add(16 * v), lane, bytes[4 + 4 * v..8 + 4 * v].try_into().unwrap());
        }
        let at = to.add(64).cast::<u16>();
        *at.add(lane) = u16::from_le_bytes([bytes[0], bytes[1]]);
        *at.add(4 + lane) = u16::from_le_bytes([bytes[2], bytes[3]]);
        f16_at(bytes, 0).is_finite() && f16_at(bytes, 2).is_finite()
    }
}

unsafe fn pack_q8_0<I: Isa>(bytes: &[u8], to: *mut u8, quad: usize, lane: usize) -> bool {
    unsafe {
        for v in 0..8 {
            let word: [u8; 4] = bytes[2 + 4 * v..6 + 4 * v].try_into().unwrap();
            // Adding 128 to a signed byte flips its top bit.
            let biased = u32::from_le_bytes(word) ^ 0x8080_8080;
            I::store_lane(to.add(quad * BYTE_BYTES + 16 * v), lane, biased.to_le_bytes());
        }
        let scale = u16::from_le_bytes([bytes[0], bytes[1]]);
        *to.add(QUADS * BYTE_BYTES).cast::<u16>().add(4 * quad + lane) = scale;
    }
    f16_at(bytes, 0).is_finite()
}
