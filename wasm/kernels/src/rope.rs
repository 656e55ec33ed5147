//! Rotary position embedding (arXiv 2104.09864) on interleaved pairs (2i, 2i + 1), the order in which
//! GGUF stores the query and key weights of Llama models.

use core::f64::consts::TAU;

/// How the frequencies of a model trained on a short context are stretched.
#[derive(Clone, Copy)]
pub enum Scaling {
    None,
    /// Positions are divided by this factor.
    Linear(f64),
    /// YaRN (arXiv 2309.00071).
    Yarn {
        factor: f64,
        original_context: f64,
        attention: f64,
        beta_fast: f64,
        beta_slow: f64,
    },
}

pub struct Rope {
    /// Radians a position, for each pair.
    frequencies: Vec<f64>,
    /// Length of the rotated pairs.
    magnitude: f64,
}

impl Rope {
    /// `divisors`, one a pair, come from the model's `rope_freqs` tensor where it has one.
    pub fn new(base: f64, dimensions: usize, scaling: Scaling, divisors: Option<&[f32]>) -> Rope {
        let pairs = dimensions / 2;
        let frequencies = (0..pairs).map(|i| {
            let frequency = base.powf(-2.0 * i as f64 / dimensions as f64);
            let frequency = frequency / divisors.map_or(1.0, |d| d[i] as f64);
            match scaling {
                Scaling::None => frequency,
                Scaling::Linear(factor) => frequency / factor,
                Scaling::Yarn { factor, original_context, beta_fast, beta_slow, .. } => {
                    // The pair that turns `beta` times over the original context.
                    let pair_of = |beta: f64| {
                        dimensions as f64 * (original_context / (beta * TAU)).ln()
                            / (2.0 * base.ln())
                    };
                    let low = pair_of(beta_fast).floor().max(0.0);
                    let high = pair_of(beta_slow).ceil().min(dimensions as f64 - 1.0);
                    let ramp = (i as f64 - low) / (high - low).max(0.001);
                    let keep = 1.0 - ramp.clamp(0.0, 1.0);
                    frequency / factor * (1.0 - keep) + frequency * keep
                }
            }
        });
        let magnitude = match scaling {
            Scaling::Yarn { factor, attention, .. } => attention * (1.0 + 0.1 * factor.ln()),
            _ => 1.0,
        };
        Rope { frequencies: frequencies.collect(), magnitude }
    }

    pub fn dimensions(&self) -> usize {
        2 * self.frequencies.len()
    }

    /// Writes (cos, sin) of each pair at `position`; `out` has `dimensions` elements.
    pub fn angles(&self, position: usize, out: &mut [f32]) {
        for (pair, frequency) in out.chunks_exact_mut(2).zip(&self.frequencies) {
            let (sin, cos) = (position as f64 * frequency).sin_cos();
            pair[0] = (cos * self.magnitude) as f32;
            pair[1] = (sin * self.magnitude) as f32;
        }
    }
}

/// Rotates the leading pairs of one head by `angles`.
pub fn rotate(head: &mut [f32], angles: &[f32]) {
    for (x, angle) in head.chunks_exact_mut(2).zip(angles.chunks_exact(2)) {
        let (cos, sin) = (angle[0], angle[1]);
        (x[0], x[1]) = (x[0] * cos - x[1] * sin, x[0] * sin + x[1] * cos);
    }
}
