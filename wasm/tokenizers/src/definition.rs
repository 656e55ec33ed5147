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
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ModelKind {
    /// Byte pair encoding by ranked merges.
    Bpe {
        ignore_merges: bool,
        byte_fallback: bool,
        fuse_unknown: bool,
        unknown: Option<u32>,
        continuing_prefix: Option<String>,
        word_suffix: Option<String>,
    },
    /// SentencePiece's byte pair encoding, whose merges are ordered by the score of their result.
    SentencePiece {
        space_prefix: bool,
        unknown: Option<u32>,
        /// Ids of the 256 byte tokens, or empty where the vocabulary has none.
        bytes: Vec<u32>,
    },
    /// Unigram language model (arXiv 1804.10959).
    Unigram {
        unknown: Option<u32>,
        byte_fallback: bool,
    },
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
