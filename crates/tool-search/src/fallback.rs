//! Words that no tool has, but one that is spelled much like them.

use std::collections::HashMap;

/// How many characters two words must share at their start.
const SHARED: usize = 4;
/// What a word counts that is only like the one that was searched for, at most.
const WEIGHT: f32 = 0.5;
/// How many such words are used.
const MOST: usize = 3;

/// Words by their first characters.
#[derive(Debug, Default)]
pub(crate) struct Fallback(HashMap<Box<str>, Vec<(Box<str>, u32)>>);

impl Fallback {
    pub(crate) fn new<'a>(terms: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let mut all: HashMap<Box<str>, Vec<(Box<str>, u32)>> = HashMap::new();
        for (term, number) in terms {
            if let Some(start) = start(term) {
                all.entry(start.into()).or_default().push((term.into(), number));
            }
        }
        Self(all)
    }

    /// The words that are most like this one, and how much.
    pub(crate) fn like(&self, term: &str) -> Vec<(u32, f32)> {
        let words = start(term).and_then(|start| self.0.get(start));
        let mut like: Vec<(u32, f32)> = words
            .into_iter()
            .flatten()
            .map(|(word, number)| (*number, likeness(term, word)))
            .filter(|(_, likeness)| *likeness > 0.0)
            .collect();
        like.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        like.truncate(MOST);
        like
    }
}

fn start(term: &str) -> Option<&str> {
    let end = term.char_indices().nth(SHARED - 1).map(|(index, character)| index + character.len_utf8())?;
    term.get(..end)
}

/// How much of the longer word both start with. Two words that share less than most of it are not about the same.
fn likeness(one: &str, other: &str) -> f32 {
    let shared = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let longer = one.chars().count().max(other.chars().count());
    let part = shared as f32 / longer.max(1) as f32;
    if part < 0.6 { 0.0 } else { WEIGHT * part }
}
