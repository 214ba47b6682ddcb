//! Search by words: BM25F, which counts a word by the field that has it and by how few tools have it.

use std::collections::HashMap;

use crate::{Query, Tool, fallback::Fallback, words::terms};

/// How many different words of a query count. Each is compared with many of the tools, and a caller can send very many.
const QUERY_TERMS: usize = 256;

/// How soon more of the same word counts no more.
const SATURATION: f32 = 1.2;

/// How much a word counts in a field, and how far the length of the field lowers that.
#[derive(Clone, Copy, Debug)]
struct Field {
    weight: f32,
    length: f32,
}

/// Name, title, server, parameters and description. What names a thing says more than what describes it, and a long
/// description is not about more than a short one.
const FIELDS: [Field; 5] = [
    Field { weight: 3.0, length: 0.5 },
    Field { weight: 2.0, length: 0.5 },
    Field { weight: 1.0, length: 0.5 },
    Field { weight: 0.5, length: 0.75 },
    Field { weight: 1.0, length: 0.75 },
];

/// Where each word is.
#[derive(Debug, Default)]
pub(crate) struct Lexical {
    numbers: HashMap<Box<str>, u32>,
    /// The tools that have each word, and what it counts there.
    postings: Vec<Box<[(u32, f32)]>>,
    fallback: Fallback,
    count: usize,
}

impl Lexical {
    pub(crate) fn new(tools: &[Tool<'_>]) -> Self {
        let mut numbers: HashMap<Box<str>, u32> = HashMap::new();
        let mut documents = Vec::with_capacity(tools.len());
        let mut totals = [0.0; FIELDS.len()];
        for tool in tools {
            let fields = texts(tool).map(|texts| {
                let mut counts: HashMap<u32, f32> = HashMap::new();
                let mut length = 0.0;
                for term in texts.iter().flat_map(|text| terms(text)) {
                    let next = numbers.len() as u32;
                    let number = *numbers.entry(term.into()).or_insert(next);
                    *counts.entry(number).or_default() += 1.0;
                    length += 1.0;
                }
                (counts, length)
            });
            for (total, (_, length)) in totals.iter_mut().zip(&fields) {
                *total += length;
            }
            documents.push(fields);
        }
        let average = totals.map(|total: f32| (total / tools.len().max(1) as f32).max(1.0));
        let mut postings: Vec<Vec<(u32, f32)>> = vec![Vec::new(); numbers.len()];
        for (place, document) in documents.into_iter().enumerate() {
            let mut counted: HashMap<u32, f32> = HashMap::new();
            for ((field, average), (counts, length)) in FIELDS.iter().zip(average).zip(document) {
                let norm = 1.0 - field.length + field.length * length / average;
                for (number, count) in counts {
                    *counted.entry(number).or_default() += field.weight * count / norm;
                }
            }
            for (number, count) in counted {
                postings[number as usize].push((place as u32, count / (SATURATION + count)));
            }
        }
        let count = tools.len();
        for posting in &mut postings {
            let rarity = rarity(count, posting.len());
            posting.iter_mut().for_each(|(_, counted)| *counted *= rarity);
        }
        Self {
            fallback: Fallback::new(numbers.iter().map(|(term, number)| (&**term, *number))),
            numbers,
            postings: postings.into_iter().map(Into::into).collect(),
            count,
        }
    }

    /// How well each tool fits. One with no word of the query has 0.
    pub(crate) fn scores(&self, query: &Query<'_>) -> Vec<f32> {
        let mut scores = vec![0.0; self.count];
        for (term, weight) in query_terms(query) {
            match self.numbers.get(&*term) {
                Some(number) => self.add(*number, weight, &mut scores),
                None => {
                    for (number, likeness) in self.fallback.like(&term) {
                        self.add(number, weight * likeness, &mut scores);
                    }
                }
            }
        }
        scores
    }

    fn add(&self, number: u32, weight: f32, scores: &mut [f32]) {
        for (place, counted) in self.postings.get(number as usize).into_iter().flatten() {
            if let Some(score) = scores.get_mut(*place as usize) {
                *score += weight * counted;
            }
        }
    }
}

/// How few tools have a word.
fn rarity(count: usize, with: usize) -> f32 {
    let (count, with) = (count as f32, with as f32);
    (1.0 + (count - with + 0.5) / (with + 0.5)).ln()
}

fn texts<'a>(tool: &'a Tool<'a>) -> [Vec<&'a str>; FIELDS.len()] {
    let parameters = tool.parameters.iter().flat_map(|(name, description)| [&**name, &**description]);
    [
        vec![&*tool.name],
        vec![&*tool.title],
        vec![&*tool.server],
        parameters.collect(),
        vec![&*tool.description],
    ]
}

/// The first words of a query. One that it has several times counts more, and less each time.
fn query_terms(query: &Query<'_>) -> HashMap<String, f32> {
    let mut counts: HashMap<String, f32> = HashMap::new();
    let texts = std::iter::once(query.text).chain(query.keywords.iter().copied());
    for term in texts.flat_map(terms) {
        if counts.len() < QUERY_TERMS || counts.contains_key(&term) {
            *counts.entry(term).or_default() += 1.0;
        }
    }
    counts.values_mut().for_each(|count| *count = count.sqrt());
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these words is like all words of the tools, and none of them is one.
    #[test]
    fn a_hostile_query_costs_no_more_than_a_long_one() {
        let words: Vec<String> = (0..50_000).map(|number| format!("tool{number}x")).collect();
        let all = words.join(" ");
        let keywords: Vec<&str> = (0..64).map(|number| &all[number * 4096..(number + 1) * 4096]).collect();
        let terms = query_terms(&Query { text: &all, keywords });
        assert_eq!(terms.len(), QUERY_TERMS);
        // The first ones count, and repetitions of them.
        let short = query_terms(&Query { text: "mail mail mail mail", keywords: vec!["send"] });
        assert_eq!((short["mail"], short["send"]), (2.0, 1.0));
    }
}
