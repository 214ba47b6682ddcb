//! WordPiece, which BERT uses: the longest pieces that a word starts with, one after the other.

use std::collections::HashMap;

use super::tokenizer::Model;

/// The longest word, in bytes.
const LONGEST: usize = 100;

#[derive(Debug)]
pub(super) struct WordPiece {
    pieces: HashMap<String, u32>,
    /// What starts a piece that does not start its word.
    prefix: String,
    is_lower: bool,
}

impl WordPiece {
    pub(super) fn new(model: Model, is_lower: bool) -> Self {
        let prefix = model.continuing_subword_prefix.unwrap_or_else(|| "##".into());
        Self { pieces: model.vocab, prefix, is_lower }
    }

    /// Passes on the pieces of a word. A word that is not made of pieces has none.
    pub(super) fn tokens(&self, word: &str, each: impl FnMut(u32)) {
        let word = if self.is_lower { word.to_lowercase() } else { word.to_owned() };
        if word.len() <= LONGEST {
            self.pieces_of(&word).unwrap_or_default().into_iter().for_each(each);
        }
    }

    fn pieces_of(&self, word: &str) -> Option<Vec<u32>> {
        let mut pieces = Vec::new();
        let mut rest = word;
        let mut text = String::new();
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(index, character)| index + character.len_utf8());
            let longest = ends.rev().find_map(|end| {
                text.clear();
                if !pieces.is_empty() {
                    text.push_str(&self.prefix);
                }
                text.push_str(&rest[..end]);
                Some((end, *self.pieces.get(&text)?))
            });
            let (end, piece) = longest?;
            pieces.push(piece);
            rest = &rest[end..];
        }
        Some(pieces)
    }
}
