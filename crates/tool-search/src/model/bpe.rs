//! Byte pair encoding of words that `▁` starts, as SentencePiece writes it.

use std::collections::HashMap;

use super::tokenizer::{Merge, Model};

/// What a vocabulary has for the space before a word.
const SPACE: char = '▁';
/// The longest word, in characters: time grows with its square.
const LONGEST: usize = 64;

#[derive(Debug)]
pub(super) struct Bpe {
    characters: HashMap<char, u32>,
    /// The tokens of single bytes, for characters that have none.
    bytes: Vec<Option<u32>>,
    /// Which two tokens become which, and how early.
    merges: HashMap<(u32, u32), (usize, u32)>,
}

impl Bpe {
    pub(super) fn new(model: Model) -> Result<Self, String> {
        let mut merges = HashMap::with_capacity(model.merges.len());
        for (rank, merge) in model.merges.iter().enumerate() {
            let (left, right) = match merge {
                Merge::Joined(pair) => pair.split_once(' ').ok_or("a merge has no space")?,
                Merge::Pair(left, right) => (&**left, &**right),
            };
            let token = |text: &str| model.vocab.get(text).copied();
            // A merge of tokens that are not in the vocabulary never happens.
            if let (Some(one), Some(other), Some(joined)) =
                (token(left), token(right), token(&format!("{left}{right}")))
            {
                merges.insert((one, other), (rank, joined));
            }
        }
        let bytes = (0..=u8::MAX).map(|byte| model.vocab.get(&format!("<0x{byte:02X}>")).copied()).collect();
        let only = |text: &str| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        };
        let characters = model.vocab.iter().filter_map(|(text, token)| Some((only(text)?, *token))).collect();
        Ok(Self { characters, bytes, merges })
    }

    pub(super) fn tokens(&self, word: &str, mut each: impl FnMut(u32)) {
        let mut tokens: Vec<u32> = Vec::new();
        for character in std::iter::once(SPACE).chain(word.chars().take(LONGEST)) {
            match self.characters.get(&character) {
                Some(token) => tokens.push(*token),
                None => {
                    let mut buffer = [0; 4];
                    let bytes = character.encode_utf8(&mut buffer).bytes();
                    tokens.extend(
                        bytes.filter_map(|byte| self.bytes.get(usize::from(byte)).copied().flatten()),
                    );
                }
            }
        }
        while let Some((place, joined)) = self.next_merge(&tokens) {
            tokens[place] = joined;
            tokens.remove(place + 1);
        }
        tokens.into_iter().for_each(&mut each);
    }

    /// The earliest merge that is possible, and where.
    fn next_merge(&self, tokens: &[u32]) -> Option<(usize, u32)> {
        let merges = tokens.windows(2).enumerate().filter_map(|(place, pair)| {
            let (rank, joined) = self.merges.get(&(pair[0], pair[1]))?;
            Some((*rank, place, *joined))
        });
        merges.min().map(|(_, place, joined)| (place, joined))
    }
}
