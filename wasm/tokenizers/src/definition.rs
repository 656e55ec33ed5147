//! What a tokenizer is, apart from its vocabulary: the counterpart of `TokenizerSpec` in
//! `core/model/tokenizer_spec.ts`, which derives it from a model file.

use serde::Deserialize;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    pub model: ModelKind,
    /// As in a `tokenizer.json`.
    pub normalizer: Option<NormalizerWrapper>,
    /// As in a `tokenizer.json`.
    pub pre_tokenizer: Option<PreTokenizerWrapper>,
    /// Whether the pre-tokenizer splits where `pieces` cuts.
    pub cut_at_words: bool,
    pub added: Vec<AddedToken>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ModelKind {
    Bpe(BpeOptions),
    SentencePiece(SentencePieceOptions),
    Unigram(UnigramOptions),
}

/// Byte pair encoding by ranked merges.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BpeOptions {
    pub ignore_merges: bool,
    pub byte_fallback: bool,
    pub fuse_unknown: bool,
    pub unknown: Option<u32>,
    pub continuing_prefix: Option<String>,
    pub word_suffix: Option<String>,
}

/// SentencePiece's byte pair encoding, whose merges are ordered by the score of their result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentencePieceOptions {
    pub space_prefix: bool,
    pub unknown: Option<u32>,
    /// Ids of the 256 byte tokens, or empty where the vocabulary has none.
    pub bytes: Vec<u32>,
}

/// Unigram language model (arXiv 1804.10959).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnigramOptions {
    pub unknown: Option<u32>,
    pub byte_fallback: bool,
}

/// A token that is found in the text before anything else looks at it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedToken {
    pub id: u32,
    pub text: String,
    /// Seen only where the caller asks for control tokens.
    pub control: bool,
    /// Takes in the whitespace before it.
    pub strip_left: bool,
    /// Takes in the whitespace after it.
    pub strip_right: bool,
}
