//! Text to token ids. The reference crate `tokenizers` splits and merges; this crate builds it
//! straight from a model file's arrays, finds added tokens, and keeps long texts linear in time
//! and small in memory. Ids to text needs no Rust: see `core/model/token_table.ts`.

mod added;
mod definition;
mod packed;
mod pieces;
mod pipeline;
mod sentencepiece;

use added::{AddedTokens, Part};
use packed::Packed;
use pipeline::Pipeline;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
pub struct Encoder {
    added: AddedTokens,
    pipeline: Pipeline,
}

#[wasm_bindgen]
impl Encoder {
    /// `definition` is the JSON of `Definition`. Vocabulary and merges come packed: the UTF-8 of
    /// all strings in one array, and where each ends. A token's id is its index; an empty string
    /// is an id that no text becomes. `scores` is empty or has one entry a token.
    #[wasm_bindgen(constructor)]
    pub fn new(
        definition: &str,
        token_bytes: &[u8],
        token_ends: &[u32],
        scores: &[f32],
        merge_bytes: &[u8],
        merge_ends: &[u32],
    ) -> Result<Encoder, JsError> {
        let definition = serde_json::from_str(definition)?;
        let tokens = Packed::new(token_bytes, token_ends)?;
        let merges = Packed::new(merge_bytes, merge_ends)?;
        Encoder::build(definition, &tokens, scores, &merges).map_err(readable)
    }

    /// Token ids of `text`, without BOS or EOS. Control tokens are seen only with `parse_special`.
    pub fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<u32>, JsError> {
        self.ids(text, parse_special).map_err(readable)
    }
}

impl Encoder {
    fn build(
        definition: definition::Definition,
        tokens: &Packed,
        scores: &[f32],
        merges: &Packed,
    ) -> tokenizers::Result<Encoder> {
        Ok(Encoder {
            added: AddedTokens::new(&definition.added)?,
            pipeline: Pipeline::new(definition, tokens, scores, merges)?,
        })
    }

    fn ids(&self, text: &str, parse_special: bool) -> tokenizers::Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 1);
        for part in self.added.split(text, parse_special) {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text) => self.pipeline.encode(text, &mut ids)?,
            }
        }
        Ok(ids)
    }
}

fn readable(error: tokenizers::Error) -> JsError {
    JsError::new(&error.to_string())
}
