//! Plain text to ids: normalizer, pre-tokenizer and model of the crate `tokenizers`, run piece by
//! piece over long texts.

use crate::definition::{Definition, ModelKind};
use crate::packed::Packed;
use crate::pieces::pieces;
use crate::sentencepiece::SentencePiece;
use ahash::AHashMap;
use tokenizers::models::bpe::{Merges, BPE};
use tokenizers::models::unigram::Unigram;
use tokenizers::{
    Model as _, NormalizerWrapper, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizerWrapper, Result, Token,
};
use tokenizers::{Normalizer as _, PreTokenizer as _};

pub struct Pipeline {
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    model: Model,
    cut_at_words: bool,
}

enum Model {
    Bpe(Box<BPE>),
    /// Its ids count the tokens that text can become; the list says which these are.
    Unigram(Box<Unigram>, Vec<u32>),
    SentencePiece(SentencePiece),
}

impl Pipeline {
    pub fn new(
        definition: Definition,
        tokens: &Packed,
        scores: &[f32],
        merges: &Packed,
    ) -> Result<Self> {
        Ok(Pipeline {
            normalizer: definition.normalizer,
            pre_tokenizer: definition.pre_tokenizer,
            model: model(definition.model, tokens, scores, merges)?,
            cut_at_words: definition.cut_at_words,
        })
    }

    /// Appends the ids of `text`.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        if let Model::SentencePiece(model) = &self.model {
            model.encode(text, ids);
            Ok(())
        } else if self.cut_at_words {
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

impl Model {
    /// The tokens of one word.
    fn tokenize(&self, word: &str) -> Result<Vec<Token>> {
        match self {
            Model::Bpe(model) => model.tokenize(word),
            Model::Unigram(model, ids) => {
                let mut tokens = model.tokenize(word)?;
                tokens.iter_mut().for_each(|token| token.id = ids[token.id as usize]);
                Ok(tokens)
            }
            Model::SentencePiece(_) => unreachable!("takes whole texts, see Pipeline::encode"),
        }
    }
}

fn model(kind: ModelKind, tokens: &Packed, scores: &[f32], merges: &Packed) -> Result<Model> {
    let text_of = |id: Option<u32>| id.and_then(|id| tokens.iter().nth(id as usize));
    Ok(match kind {
        ModelKind::SentencePiece { space_prefix, unknown, bytes } => {
            Model::SentencePiece(SentencePiece::new(tokens, scores, space_prefix, unknown, bytes))
        }
        ModelKind::Unigram { unknown, byte_fallback } => {
            let (ids, pairs): (Vec<_>, Vec<_>) = tokens
                .iter()
                .zip(scores)
                .enumerate()
                .filter(|(_, (text, _))| !text.is_empty())
                .map(|(id, (text, &score))| (id as u32, (text.to_string(), f64::from(score))))
                .unzip();
            let unknown = ids.iter().position(|&id| Some(id) == unknown);
            Model::Unigram(Box::new(Unigram::from(pairs, unknown, byte_fallback)?), ids)
        }
        ModelKind::Bpe {
            ignore_merges,
            byte_fallback,
            fuse_unknown,
            unknown,
            continuing_prefix,
            word_suffix,
        } => {
            let vocabulary = vocabulary(tokens);
            let merges = known_merges(merges, &vocabulary, continuing_prefix.as_deref());
            let mut builder = BPE::builder()
                .vocab_and_merges(vocabulary, merges)
                .ignore_merges(ignore_merges)
                .byte_fallback(byte_fallback)
                .fuse_unk(fuse_unknown);
            if let Some(text) = text_of(unknown) {
                builder = builder.unk_token(text.to_string());
            }
            if let Some(prefix) = continuing_prefix {
                builder = builder.continuing_subword_prefix(prefix);
            }
            if let Some(suffix) = word_suffix {
                builder = builder.end_of_word_suffix(suffix);
            }
            Model::Bpe(Box::new(builder.build()?))
        }
    })
}

fn vocabulary(tokens: &Packed) -> AHashMap<String, u32> {
    let mut vocabulary = AHashMap::with_capacity(tokens.len());
    for (id, text) in tokens.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
        vocabulary.insert(text.to_string(), id as u32);
    }
    vocabulary
}

/// Splits "left right" at its space and leaves out merges of or to a token that does not exist,
/// as other readers of such files do; a control token counts as such.
fn known_merges(
    merges: &Packed,
    vocabulary: &AHashMap<String, u32>,
    continuing_prefix: Option<&str>,
) -> Merges {
    let prefix = continuing_prefix.map_or(0, str::len);
    let mut joined = String::new();
    let mut known = Vec::with_capacity(merges.len());
    for merge in merges.iter() {
        // The left part may itself begin with a space.
        let Some(at) = merge.char_indices().skip(1).find(|(_, c)| *c == ' ').map(|(at, _)| at)
        else {
            continue;
        };
        let (left, right) = (&merge[..at], &merge[at + 1..]);
        joined.clear();
        joined.push_str(left);
        joined.push_str(right.get(prefix..).unwrap_or(""));
        if [left, right, &joined].iter().all(|text| vocabulary.contains_key(*text)) {
            known.push((left.to_string(), right.to_string()));
        }
    }
    known
}
