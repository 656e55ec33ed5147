//! A step's input, as the host writes it: for each sequence a header of seven words (new tokens, first
//! position, output mode, blocks; kind, share and least blocks of the attention plan) followed by the
//! token ids and the block table.

use crate::cache::BLOCK;
use crate::selection::Plan;

/// Words of a sequence's header.
const HEADER: usize = 7;

/// Rows for which logits are wanted.
const OUTPUT_LAST: u32 = 1;
const OUTPUT_ALL: u32 = 2;

/// One new token.
#[derive(Clone, Copy)]
pub struct Token {
    /// Its place in the batch.
    pub index: usize,
    pub id: u32,
    pub position: usize,
    /// Its sequence's block table: first word and length in `Batch::words`.
    table: (usize, usize),
    pub output: bool,
    pub plan: Plan,
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
            let [count, position, output, blocks, kind, share, least]: [u32; HEADER] =
                core::array::from_fn(|i| words[at + i]);
            let plan = Plan::new(kind, f32::from_bits(share), least as usize);
            let ids = at + HEADER..at + HEADER + count as usize;
            let table = (ids.end, blocks as usize);
            at = ids.end + blocks as usize;
            for (i, &id) in words[ids].iter().enumerate() {
                let last = i + 1 == count as usize;
                let output = output == OUTPUT_ALL || (output == OUTPUT_LAST && last);
                let (index, position) = (tokens.len(), position as usize + i);
                tokens.push(Token { index, id, position, table, output, plan });
            }
        }
        Batch { words, tokens }
    }

    /// Blocks up to the token's own, which its attention reads.
    pub fn attended(&self, token: &Token) -> &'a [u32] {
        &self.blocks(token)[..(token.position + 1).div_ceil(BLOCK)]
    }

    /// Physical block of each 16 positions of the token's sequence.
    pub fn blocks(&self, token: &Token) -> &'a [u32] {
        &self.words[token.table.0..token.table.0 + token.table.1]
    }
}
