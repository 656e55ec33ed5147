//! Finds added tokens in a text: leftmost first, of those the longest.

use crate::definition::AddedToken;
use aho_corasick::{AhoCorasick, BuildError, MatchKind};

/// A part of a text: plain, or an added token.
pub enum Part<'a> {
    Text(&'a str),
    Token(u32),
}

pub struct AddedTokens {
    /// Tokens that are always found.
    always: Matcher,
    /// All added tokens, control tokens among them.
    all: Matcher,
}

impl AddedTokens {
    pub fn new(tokens: &[AddedToken]) -> Result<Self, BuildError> {
        Ok(AddedTokens {
            always: Matcher::new(tokens.iter().filter(|token| !token.control))?,
            all: Matcher::new(tokens.iter())?,
        })
    }

    /// The parts of `text` in order, none of them empty.
    pub fn split<'a>(&self, text: &'a str, control: bool) -> Vec<Part<'a>> {
        if control { &self.all } else { &self.always }.split(text)
    }
}

struct Matcher {
    automaton: AhoCorasick,
    /// What each pattern of the automaton stands for.
    found: Vec<Found>,
}

struct Found {
    id: u32,
    strip_left: bool,
    strip_right: bool,
}

impl Matcher {
    fn new<'a>(tokens: impl Iterator<Item = &'a AddedToken>) -> Result<Self, BuildError> {
        let (texts, found): (Vec<_>, Vec<_>) = tokens
            .filter(|token| !token.text.is_empty())
            .map(|token| {
                let (strip_left, strip_right) = (token.strip_left, token.strip_right);
                (
                    &token.text,
                    Found {
                        id: token.id,
                        strip_left,
                        strip_right,
                    },
                )
            })
            .unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts)?;
        Ok(Matcher { automaton, found })
    }

    fn split<'a>(&self, text: &'a str) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let mut done = 0;
        for hit in self.automaton.find_iter(text) {
            let token = &self.found[hit.pattern()];
            let mut before = &text[done.min(hit.start())..hit.start()];
            let mut end = hit.end();
            if token.strip_left {
                before = before.trim_end();
            }
            if token.strip_right {
                end = text.len() - text[end..].trim_start().len();
            }
            if !before.is_empty() {
                parts.push(Part::Text(before));
            }
            parts.push(Part::Token(token.id));
            done = end;
        }
        if done < text.len() {
            parts.push(Part::Text(&text[done..]));
        }
        parts
    }
}
