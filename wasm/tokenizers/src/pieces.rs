//! Cuts a long text into pieces that can be encoded one by one with the same result, which bounds
//! the memory that encoding takes by the piece and not by the text.

/// A piece is at least this long, in bytes, unless the text ends before.
const SHORTEST: usize = 8 << 10;

/// A piece is at most this long. A single word that is longer, say a million letters "a", is cut
/// here, and its tokens may differ at that place from those of the whole.
const LONGEST: usize = 256 << 10;

pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(piece_end(rest));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn piece_end(text: &str) -> usize {
    if text.len() <= SHORTEST {
        return text.len();
    }
    let mut before = ' ';
    let end = text.floor_char_boundary(LONGEST);
    for (at, character) in text[..end].char_indices() {
        if at >= SHORTEST && starts_word(before, character) {
            return at;
        }
        before = character;
    }
    end
}

/// Whether every pre-tokenizer that this project knows splits between the two characters: a space
/// never continues a word, and a letter is never continued by ASCII whitespace or punctuation.
fn starts_word(before: char, character: char) -> bool {
    match character {
        ' ' => !before.is_whitespace(),
        _ => is_letter(before) && (character.is_ascii_whitespace() || is_punctuation(character)),
    }
}

/// Some characters of the general category L, among them those of scripts without spaces.
fn is_letter(character: char) -> bool {
    matches!(character,
        'a'..='z' | 'A'..='Z' | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}'
        | '\u{4E00}'..='\u{9FA5}' | '\u{AC00}'..='\u{D7A3}')
}

/// Some characters that are neither letters nor numbers nor whitespace.
fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation() || matches!(character, '\u{3001}' | '\u{3002}' | '\u{FF0C}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text_and_begin_with_a_word() {
        let text = "one two,\n".repeat(10_000);
        let cut: Vec<_> = pieces(&text).collect();
        assert_eq!(cut.concat(), text);
        assert!(cut.len() > 5 && cut.iter().all(|piece| piece.len() < SHORTEST + 8));
        assert!(cut[1..].iter().all(|piece| piece.starts_with([' ', ','])));
    }

    #[test]
    fn pieces_cut_an_endless_word_between_characters() {
        let text = "\u{2603}".repeat(LONGEST);
        let cut: Vec<_> = pieces(&text).collect();
        assert_eq!(cut.concat(), text);
        assert_eq!(cut[0].len(), LONGEST / 3 * 3);
    }
}
