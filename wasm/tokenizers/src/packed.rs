//! Many strings in two arrays: how vocabularies and merges cross from JavaScript in one copy.

use std::str::{Utf8Error, from_utf8};

pub struct Packed<'a> {
    text: &'a str,
    ends: &'a [u32],
}

impl<'a> Packed<'a> {
    /// `ends[i]` is where string `i` ends in `bytes`, and string `i + 1` begins.
    pub fn new(bytes: &'a [u8], ends: &'a [u32]) -> Result<Self, Utf8Error> {
        Ok(Packed {
            text: from_utf8(bytes)?,
            ends,
        })
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let string = &self.text[start..end as usize];
            start = end as usize;
            string
        })
    }

    pub fn get(&self, index: u32) -> Option<&'a str> {
        self.iter().nth(index as usize)
    }

    /// Of a vocabulary, the tokens that text can become, with their ids: those that have a text.
    pub fn reachable(&self) -> impl Iterator<Item = (u32, &'a str)> + '_ {
        (0..).zip(self.iter()).filter(|(_, text)| !text.is_empty())
    }
}
