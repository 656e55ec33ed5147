//! Many strings in two arrays: how vocabularies and merges cross from JavaScript in one copy.

use std::str::{from_utf8, Utf8Error};

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
}
