//! SentencePiece's byte pair encoding as model files with scores and no merges describe it: of all
//! neighbours that join to a token, those with the best score join first, leftmost on a tie. The
//! crate `tokenizers` knows only ranked merges, and a million of them would have to be made up.

use crate::definition::SentencePieceOptions;
use crate::packed::Packed;
use ahash::AHashMap;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// U+2581, which stands for a space in the vocabulary.
const SPACE: &str = "\u{2581}";

pub struct SentencePiece {
    tokens: AHashMap<Box<str>, (u32, f32)>,
    space_prefix: bool,
    unknown: Option<u32>,
    bytes: Vec<u32>,
    /// Whether no token goes on past a word's end, so that words can be encoded one by one.
    words_apart: bool,
}

impl SentencePiece {
    pub fn new(options: SentencePieceOptions, tokens: &Packed, scores: &[f32]) -> Self {
        let mut map = AHashMap::with_capacity(tokens.len());
        let mut words_apart = true;
        for (id, text) in tokens.reachable() {
            words_apart &= !text.trim_start_matches(SPACE).contains(SPACE);
            map.insert(text.into(), (id, scores[id as usize]));
        }
        SentencePiece {
            tokens: map,
            space_prefix: options.space_prefix,
            unknown: options.unknown,
            bytes: options.bytes,
            words_apart,
        }
    }

    /// Appends the ids of `text`, which starts a text or follows an added token.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let prefix = if self.space_prefix { SPACE } else { "" };
        let text = format!("{prefix}{}", text.replace(' ', SPACE));
        if self.words_apart {
            words(&text).for_each(|word| self.merge(word, ids));
        } else {
            self.merge(&text, ids);
        }
    }

    fn merge(&self, text: &str, ids: &mut Vec<u32>) {
        let mut symbols = symbols(text);
        let mut queue = BinaryHeap::with_capacity(symbols.len());
        for left in 0..symbols.len().saturating_sub(1) {
            queue.extend(self.pair(text, &symbols, left));
        }
        while let Some(best) = queue.pop() {
            let right = symbols[best.left].next;
            let expired =
                right == NONE || symbols[right].end - symbols[best.left].start != best.size;
            if symbols[best.left].gone() || expired {
                continue;
            }
            let Symbol { end, next, .. } = symbols[right];
            symbols[right].end = symbols[right].start;
            symbols[best.left].end = end;
            symbols[best.left].next = next;
            if next != NONE {
                symbols[next].previous = best.left;
            }
            queue.extend(self.pair(text, &symbols, best.left));
            let previous = symbols[best.left].previous;
            if previous != NONE {
                queue.extend(self.pair(text, &symbols, previous));
            }
        }
        for symbol in symbols.iter().filter(|symbol| !symbol.gone()) {
            self.emit(&text[symbol.start..symbol.end], ids);
        }
    }

    /// The merge of a symbol with the next one, where it gives a token.
    fn pair(&self, text: &str, symbols: &[Symbol], left: usize) -> Option<Pair> {
        let Symbol { start, next, .. } = symbols[left];
        let end = symbols.get(next)?.end;
        let &(_, score) = self.tokens.get(&text[start..end])?;
        Some(Pair {
            score,
            left,
            size: end - start,
        })
    }

    /// A character that is no token is spelled in byte tokens.
    fn emit(&self, piece: &str, ids: &mut Vec<u32>) {
        match self.tokens.get(piece) {
            Some(&(id, _)) => ids.push(id),
            None if self.bytes.len() == 256 => {
                ids.extend(piece.bytes().map(|byte| self.bytes[byte as usize]));
            }
            None => ids.extend(self.unknown),
        }
    }
}

/// No neighbour on that side.
const NONE: usize = usize::MAX;

/// A stretch of the text; empty once it has joined its left neighbour.
struct Symbol {
    start: usize,
    end: usize,
    previous: usize,
    next: usize,
}

impl Symbol {
    fn gone(&self) -> bool {
        self.start == self.end
    }
}

fn symbols(text: &str) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = text
        .char_indices()
        .enumerate()
        .map(|(i, (start, character))| Symbol {
            start,
            end: start + character.len_utf8(),
            previous: i.wrapping_sub(1),
            next: i + 1,
        })
        .collect();
    if let Some(last) = symbols.last_mut() {
        last.next = NONE;
    }
    symbols
}

/// Two neighbours that may join. `size` in bytes tells whether they are still what they were.
struct Pair {
    score: f32,
    left: usize,
    size: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

/// Cuts before each run of spaces: "▁▁a▁b" gives "▁▁a", "▁b".
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let body = rest.len() - rest.trim_start_matches(SPACE).len();
        let end = rest[body..].find(SPACE).map_or(rest.len(), |at| body + at);
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}
