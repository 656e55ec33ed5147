//! The models of the crate `tokenizers`, built straight from a file's arrays, without a detour through
//! the megabytes of JSON that the crate reads.

use crate::definition::{BpeOptions, UnigramOptions};
use crate::packed::Packed;
use ahash::AHashMap;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::{Model, Result, Token};

pub enum WordModel {
    Bpe(Box<BPE>),
    /// Its ids count the tokens that text can become; the list says which these are.
    Unigram(Box<Unigram>, Vec<u32>),
}

impl WordModel {
    pub fn bpe(options: BpeOptions, tokens: &Packed, merges: &Packed) -> Result<Self> {
        let vocabulary = vocabulary(tokens);
        let prefix = options.continuing_prefix.as_deref().unwrap_or("");
        let merges = known_merges(merges, &vocabulary, prefix.len());
        let mut builder = BPE::builder()
            .vocab_and_merges(vocabulary, merges)
            .ignore_merges(options.ignore_merges)
            .byte_fallback(options.byte_fallback)
            .fuse_unk(options.fuse_unknown);
        if let Some(text) = options.unknown.and_then(|id| tokens.get(id)) {
            builder = builder.unk_token(text.to_string());
        }
        if let Some(prefix) = options.continuing_prefix {
            builder = builder.continuing_subword_prefix(prefix);
        }
        if let Some(suffix) = options.word_suffix {
            builder = builder.end_of_word_suffix(suffix);
        }
        Ok(WordModel::Bpe(Box::new(builder.build()?)))
    }

    pub fn unigram(options: UnigramOptions, tokens: &Packed, scores: &[f32]) -> Result<Self> {
        let (ids, pairs): (Vec<_>, Vec<_>) = tokens
            .reachable()
            .map(|(id, text)| (id, (text.to_string(), f64::from(scores[id as usize]))))
            .unzip();
        let unknown = ids.iter().position(|&id| Some(id) == options.unknown);
        let model = Unigram::from(pairs, unknown, options.byte_fallback)?;
        Ok(WordModel::Unigram(Box::new(model), ids))
    }

    /// The tokens of one word.
    pub fn tokenize(&self, word: &str) -> Result<Vec<Token>> {
        match self {
            WordModel::Bpe(model) => model.tokenize(word),
            WordModel::Unigram(model, ids) => {
                let mut tokens = model.tokenize(word)?;
                for token in &mut tokens {
                    token.id = ids[token.id as usize];
                }
                Ok(tokens)
            }
        }
    }
}

fn vocabulary(tokens: &Packed) -> Vocab {
    let mut vocabulary = AHashMap::with_capacity(tokens.len());
    vocabulary.extend(tokens.reachable().map(|(id, text)| (text.to_string(), id)));
    vocabulary
}

/// Splits "left right" at its space and leaves out merges of or to a token that does not exist,
/// as other readers of such files do; a control token counts as such.
fn known_merges(merges: &Packed, vocabulary: &Vocab, prefix: usize) -> Merges {
    let mut joined = String::new();
    let mut known = Vec::with_capacity(merges.len());
    for merge in merges.iter() {
        let Some((left, right)) = split_merge(merge) else {
            continue;
        };
        joined.clear();
        joined.push_str(left);
        joined.push_str(right.get(prefix..).unwrap_or(""));
        if [left, right, &joined]
            .iter()
            .all(|text| vocabulary.contains_key(*text))
        {
            known.push((left.to_string(), right.to_string()));
        }
    }
    known
}

/// The left part may itself begin with a space.
fn split_merge(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let at = first + merge[first..].find(' ')?;
    Some((&merge[..at], &merge[at + 1..]))
}
