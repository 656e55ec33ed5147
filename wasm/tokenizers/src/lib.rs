//! Text to token ids. The reference crate `tokenizers` splits and merges; this crate builds it
//! straight from a model file's arrays, finds added tokens, and keeps long texts linear in time
//! and small in memory. Ids to text needs no Rust: see `core/model/token_table.ts`.

mod added;
mod definition;
mod packed;
mod pieces;
mod sentencepiece;
mod word_encoder;
mod word_model;

use added::{AddedTokens, Part};
use definition::{Definition, ModelKind};
use packed::Packed;
use sentencepiece::SentencePiece;
use tokenizers::Result;
use wasm_bindgen::prelude::*;
use word_encoder::WordEncoder;
use word_model::WordModel;

#[wasm_bindgen]
pub struct Encoder {
    added: AddedTokens,
    text: TextEncoder,
}

/// Plain text to ids.
enum TextEncoder {
    SentencePiece(SentencePiece),
    Words(WordEncoder),
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
    ) -> std::result::Result<Encoder, JsError> {
        let definition = serde_json::from_str(definition)?;
        let tokens = Packed::new(token_bytes, token_ends)?;
        let merges = Packed::new(merge_bytes, merge_ends)?;
        Encoder::build(definition, &tokens, scores, &merges).map_err(readable)
    }

    /// Token ids of `text`, without BOS or EOS. Control tokens are seen only with `parse_special`.
    pub fn encode(
        &self,
        text: &str,
        parse_special: bool,
    ) -> std::result::Result<Vec<u32>, JsError> {
        self.ids(text, parse_special).map_err(readable)
    }
}

impl Encoder {
    fn build(
        definition: Definition,
        tokens: &Packed,
        scores: &[f32],
        merges: &Packed,
    ) -> Result<Encoder> {
        let added = AddedTokens::new(&definition.added)?;
        let model = match definition.model {
            ModelKind::SentencePiece(options) => {
                let model = SentencePiece::new(options, tokens, scores);
                let text = TextEncoder::SentencePiece(model);
                return Ok(Encoder { added, text });
            }
            ModelKind::Bpe(options) => WordModel::bpe(options, tokens, merges)?,
            ModelKind::Unigram(options) => WordModel::unigram(options, tokens, scores)?,
        };
        let text = TextEncoder::Words(WordEncoder {
            normalizer: definition.normalizer,
            pre_tokenizer: definition.pre_tokenizer,
            model,
            cut_at_words: definition.cut_at_words,
        });
        Ok(Encoder { added, text })
    }

    fn ids(&self, text: &str, parse_special: bool) -> Result<Vec<u32>> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 1);
        for part in self.added.split(text, parse_special) {
            match (part, &self.text) {
                (Part::Token(id), _) => ids.push(id),
                (Part::Text(text), TextEncoder::SentencePiece(encoder)) => {
                    encoder.encode(text, &mut ids);
                }
                (Part::Text(text), TextEncoder::Words(encoder)) => {
                    encoder.encode(text, &mut ids)?
                }
            }
        }
        Ok(ids)
    }
}

fn readable(error: tokenizers::Error) -> JsError {
    JsError::new(&error.to_string())
}
