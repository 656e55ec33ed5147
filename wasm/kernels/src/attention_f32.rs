//! Attention over `F32` blocks, plainly: the reference that the quantised form is judged by.

use crate::cache::BLOCK;
use crate::records::Records;

/// Attention of query heads of one KV head; `q` and `out` are [heads][size].
pub unsafe fn attend(q: &[f32], size: usize, records: Records, out: &mut [f32]) {
    for (q, out) in q.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
        unsafe { attend_head(q, records, out) };
    }
}

unsafe fn attend_head(q: &[f32], records: Records, out: &mut [f32]) {
    let size = q.len();
    let row = |record: *const u8, index: usize| unsafe {
        core::slice::from_raw_parts(record.cast::<f32>().add(index * size), size)
    };
    let scale = 1.0 / (size as f32).sqrt();
    let mut scores: Vec<f32> = records
        .iter()
        .flat_map(|record| (0..BLOCK).map(move |slot| row(record, slot)))
        .take(records.tokens())
        .map(|key| key.iter().zip(q).map(|(k, q)| k * q).sum::<f32>() * scale)
        .collect();
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - max).exp());
    let total: f32 = scores.iter().sum();
    out.fill(0.0);
    let values =
        records.iter().flat_map(|record| (BLOCK..2 * BLOCK).map(move |slot| row(record, slot)));
    for (p, value) in scores.iter().zip(values) {
        for (out, v) in out.iter_mut().zip(value) {
            *out += p * v / total;
        }
    }
}
