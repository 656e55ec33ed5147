//! Plain text to ids, word by word: normalizer, pre-tokenizer and model of the crate `tokenizers`.

use crate::pieces::pieces;
use crate::word_model::WordModel;
use tokenizers::{Normalizer, NormalizerWrapper, PreTokenizer, PreTokenizerWrapper};
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, Result};

pub struct WordEncoder {
    pub normalizer: Option<NormalizerWrapper>,
    pub pre_tokenizer: Option<PreTokenizerWrapper>,
    pub model: WordModel,
    /// Whether long texts are encoded in pieces.
    pub cut_at_words: bool,
}

impl WordEncoder {
    /// Appends the ids of `text`.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        if self.cut_at_words {
            pieces(text).try_for_each(|piece| self.encode_piece(piece, ids))
        } else {
            self.encode_piece(text, ids)
        }
    }

    fn encode_piece(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        let mut words = PreTokenizedString::from(piece);
        if let Some(normalizer) = &self.normalizer {
            words.normalize(|word| normalizer.normalize(word))?;
        }
        if let Some(pre_tokenizer) = &self.pre_tokenizer {
            pre_tokenizer.pre_tokenize(&mut words)?;
        }
        words.tokenize(|word| self.model.tokenize(word.get()))?;
        for (_, _, tokens) in words.get_splits(OffsetReferential::Original, OffsetType::None) {
            ids.extend(tokens.iter().flatten().map(|token| token.id));
        }
        Ok(())
    }
}
