//! A weight matrix, repacked while it is loaded: four rows lie interleaved ("a quad"), so that the
//! four lanes of a vector are four rows and no kernel sums across lanes. Four quads make a band, which
//! is one unbroken stream for the hardware's prefetching: with a stream for each quad, decoding
//! waited for memory two thirds of the time. A band holds its blocks in the order of the columns. A
//! block consists of lines of 64 bytes, a vector of 16 for each quad, in the order in which they are
//! read:
//!
//! ```text
//! Nibble  32 columns: [4 lines] low nibbles columns 0 to 15, high ones 16 to 31; scales, minima
//! Five    32 columns: [4] as Nibble; [1] bit v of a byte is the fifth bit of line v's low nibble,
//!         bit 4 + v that of its high one; scales, minima
//! Six     16 columns: [4] 0 to 63; scales, minima
//! Byte    32 columns: [8] value + 128; [1/2] scales
//! Float    1 column:  16 elements, f32, f16 or bf16
//! ```
//!
//! Scales and minima are halves where they are so in the file, in one line, a word for each row; else
//! f32, a line each. The scales of `Byte` are halves, a word for one row of the first or third quad and
//! one of the next. A vector of weights holds four columns of each row, ordered as `Isa` wants them.

use crate::formats::{Format, Group, decode_group, f16_at, f16_of, f16_to_f32, float_at};
use crate::isa::Isa;
use crate::memory::reserve;

/// Quads of a band.
pub const QUADS: usize = 4;
/// Rows of a band.
pub const BAND_ROWS: usize = 4 * QUADS;
/// Bytes of a vector for each quad.
pub const LINE: usize = 16 * QUADS;

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

impl Scales {
    /// Bytes of a block's scales and minima.
    pub const fn bytes(self) -> usize {
        match self {
            Scales::Half => LINE,
            Scales::Single => 2 * LINE,
        }
    }
}

/// Bytes of a block of `Byte`: the scales take half a line.
pub const BYTE_BLOCK: usize = 8 * LINE + LINE / 2;

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

    /// Bands of 16 rows; the rows that the last one lacks are zero.
    pub fn bands(&self) -> usize {
        self.rows.div_ceil(BAND_ROWS)
    }

    /// Columns of a block, and its bytes.
    fn block(&self) -> (usize, usize) {
        match self.packing {
            Packing::Nibble(scales) => (32, 4 * LINE + scales.bytes()),
            Packing::Five(scales) => (32, 5 * LINE + scales.bytes()),
            Packing::Six => (16, 4 * LINE + Scales::Single.bytes()),
            Packing::Byte => (32, BYTE_BLOCK),
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

    /// The band that row `row` is in, its quad there and its lane.
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
            // The quad's vector of the first line.
            let own = unsafe { to.add(16 * quad) };
            let group = || decode_group(self.format, bytes, block);
            good &= unsafe {
                match self.packing {
                    Packing::Nibble(_) if self.format == Format::Q4_1 => {
                        pack_q4_1::<I>(&bytes[20 * block..][..20], own, lane)
                    }
                    Packing::Nibble(scales) => {
                        let group = group();
                        pack_nibbles::<I>(&group, own, lane);
                        store_scales(scales, own.add(4 * LINE), lane, &group, 0)
                    }
                    Packing::Five(scales) => {
                        let group = group();
                        pack_nibbles::<I>(&group, own, lane);
                        pack_fifth_bits::<I>(&group, own.add(4 * LINE), lane);
                        store_scales(scales, own.add(5 * LINE), lane, &group, 0)
                    }
                    Packing::Six => {
                        let group = decode_group(self.format, bytes, block / 2);
                        pack_six::<I>(&group, block % 2, own, lane)
                    }
                    Packing::Byte => {
                        let scales = to.add(8 * LINE).cast::<u16>();
                        let bytes = &bytes[34 * block..][..34];
                        pack_q8_0::<I>(bytes, own, scales.add(byte_scale(quad, lane)), lane)
                    }
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
            let own = |line: usize| unsafe { block.add(LINE * line + 16 * quad) };
            let byte = |line: usize| unsafe { I::load_lane(own(line), lane) }[k % 4];
            // Of `Nibble` and `Five`: line, and whether the high nibble.
            let (v, high) = (k % 16 / 4, k / 16);
            let nibble = || byte(v) >> (4 * high) & 15;
            *out = unsafe {
                match self.packing {
                    Packing::Nibble(scales) => scaled(scales, own(4), lane, nibble()),
                    Packing::Five(scales) => {
                        let fifth = byte(4) >> (4 * high + v) & 1;
                        scaled(scales, own(5), lane, nibble() | fifth << 4)
                    }
                    Packing::Six => scaled(Scales::Single, own(4), lane, byte(v)),
                    Packing::Byte => {
                        let scale = half_at(block.add(8 * LINE), byte_scale(quad, lane));
                        scale * (byte(k / 4) as f32 - 128.0)
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
        unsafe { I::store_lane(to.add(LINE * v), lane, core::array::from_fn(q)) };
    }
}

unsafe fn pack_fifth_bits<I: Isa>(group: &Group, to: *mut u8, lane: usize) {
    let bits = |k: usize| (0..8).fold(0, |bits, v| bits | (group.q[4 * v + k] as u8 >> 4 & 1) << v);
    unsafe { I::store_lane(to, lane, core::array::from_fn(bits)) };
}

unsafe fn pack_six<I: Isa>(group: &Group, half: usize, to: *mut u8, lane: usize) -> bool {
    for v in 0..4 {
        let q = |k: usize| group.q[16 * half + 4 * v + k] as u8;
        unsafe { I::store_lane(to.add(LINE * v), lane, core::array::from_fn(q)) };
    }
    unsafe { store_scales(Scales::Single, to.add(4 * LINE), lane, group, half) }
}

/// A row's scale and minimum. False where one cannot be kept.
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
                *to.cast::<[u16; 2]>().add(lane) = [s.unwrap_or(0), m.unwrap_or(0)];
            }
            s.is_some() && m.is_some()
        }
        Scales::Single => unsafe { store_singles(to, lane, scale, min) },
    }
}

unsafe fn store_singles(to: *mut u8, lane: usize, scale: f32, min: f32) -> bool {
    unsafe {
        *to.cast::<f32>().add(lane) = scale;
        *to.add(LINE).cast::<f32>().add(lane) = min;
    }
    scale.is_finite() && min.is_finite()
}

/// `scale * q + min`
unsafe fn scaled(scales: Scales, at: *const u8, lane: usize, q: u8) -> f32 {
    let (scale, min) = unsafe {
        match scales {
            Scales::Half => (half_at(at, 2 * lane), half_at(at, 2 * lane + 1)),
            Scales::Single => (*at.cast::<f32>().add(lane), *at.add(LINE).cast::<f32>().add(lane)),
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
            I::store_lane(to.add(LINE * v), lane, bytes[4 + 4 * v..8 + 4 * v].try_into().unwrap());
        }
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        *to.add(4 * LINE).cast::<[u16; 2]>().add(lane) = [half(0), half(2)];
        f16_at(bytes, 0).is_finite() && f16_at(bytes, 2).is_finite()
    }
}

/// Which of the halves at the end of a block of `Byte` is a row's scale: a word has those of two quads.
fn byte_scale(quad: usize, lane: usize) -> usize {
    8 * (quad / 2) + 2 * lane + quad % 2
}

unsafe fn pack_q8_0<I: Isa>(bytes: &[u8], to: *mut u8, scale: *mut u16, lane: usize) -> bool {
    unsafe {
        for v in 0..8 {
            let word: [u8; 4] = bytes[2 + 4 * v..6 + 4 * v].try_into().unwrap();
            // Adding 128 to a signed byte flips its top bit.
            let biased = u32::from_le_bytes(word) ^ 0x8080_8080;
            I::store_lane(to.add(LINE * v), lane, biased.to_le_bytes());
        }
        *scale = u16::from_le_bytes([bytes[0], bytes[1]]);
    }
    f16_at(bytes, 0).is_finite()
}
