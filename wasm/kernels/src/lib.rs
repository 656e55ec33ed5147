//! Llama-architecture inference for WebAssembly: repacked integer kernels, a paged KV cache, exact
//! statistics of the logits. `Core` is the whole interface; it takes and gives numbers only, so that
//! a host can instantiate the module with its own memory as often as it likes. The host validates.

#![cfg_attr(target_feature = "atomics", feature(stdarch_wasm_atomic_wait))]

mod activations;
mod attend;
mod attention_f32;
mod attention_q8;
mod batch;
mod buffer;
mod cache;
mod core_api;
mod draw;
mod formats;
mod isa;
mod kernel;
mod kv;
mod math;
mod matmul;
mod matrix;
mod memory;
mod model;
mod moments;
mod pool;
mod probe;
mod records;
#[cfg(target_feature = "relaxed-simd")]
mod relaxed;
mod rope;
mod scalar;
mod scan;
mod scratch;
mod selection;
#[cfg(not(target_feature = "relaxed-simd"))]
mod simd128;
mod sketch;
mod stats;
#[cfg(target_feature = "atomics")]
mod team;
mod top_k;
mod weights;

#[cfg(target_feature = "relaxed-simd")]
type Native = relaxed::Relaxed;
#[cfg(not(target_feature = "relaxed-simd"))]
type Native = simd128::Simd128;
