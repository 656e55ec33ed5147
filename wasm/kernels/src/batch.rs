//! A step's input, as the host writes it: for each sequence a header of four words (new tokens, first
//! position, output mode, blocks) followed by the token ids and the block table.

/// Rows for which logits are wanted.
const OUTPUT_LAST: u32 = 1;
const OUTPUT_ALL: u32 = 2;

/// One new token.
#[derive(Clone, Copy)]
pub struct Token {
    pub id: u32,
    pub position: usize,
    /// Its sequence's block table: first word and length in `Batch::words`.
    table: (usize, usize),
    pub output: bool,
}

pub struct Batch<'a> {
    words: &'a [u32],
    pub tokens: Vec<Token>,
}

impl<'a> Batch<'a> {
    /// Reads `sequences` sequences; the host has validated them.
    pub fn parse(words: &'a [u32], sequences: usize) -> Batch<'a> {
        let mut tokens = Vec::new();
        let mut at = 0;
        for _ in 0..sequences {
            let [count, position, output, blocks] = core::array::from_fn(|i| words[at + i]);
            let ids = at + 4..at + 4 + count as usize;
            let table = (ids.end, blocks as usize);
            at = ids.end + blocks as usize;
            for (i, &id) in words[ids].iter().enumerate() {
                let last = i + 1 == count as usize;
                let output = output == OUTPUT_ALL || (output == OUTPUT_LAST && last);
                tokens.push(Token { id, position: position as usize + i, table, output });
            }
        }
        Batch { words, tokens }
    }

    /// Physical block of each 16 positions of the token's sequence.
    pub fn blocks(&self, token: &Token) -> &'a [u32] {
        &self.words[token.table.0..token.table.0 + token.table.1]
    }
}
