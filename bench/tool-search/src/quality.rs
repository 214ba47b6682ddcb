//! How often the right tools are found.

use std::{
    fmt,
    time::{Duration, Instant},
};

use skep_tool_search::{Hit, Index, Query, Semantic, StaticModel, Tool, ToolVectors};
use tiktoken_rs::CoreBPE;

use crate::data::{Set, Task};

/// How many tools a search returns, as in a virtual server.
const RETURNED: usize = 8;
/// How many bytes of JSON are counted as a token, as in the metric of a virtual server.
const TOKEN: usize = 4;

/// A search with the defaults of a virtual server.
pub(crate) struct Searcher<'a> {
    index: Index,
    model: Option<(&'a StaticModel, Vec<Option<ToolVectors>>)>,
}

/// The means over all queries.
#[derive(Default)]
pub(crate) struct Quality {
    recall: [f64; 3],
    gain: f64,
    time: Duration,
    /// The share of tokens that it saves, by bytes and by a tokenizer.
    saved: [f64; 2],
}

impl<'a> Searcher<'a> {
    pub(crate) fn new(tools: &[Tool<'_>], model: Option<&'a StaticModel>) -> Self {
        let vectors = |model: &'a StaticModel| (model, tools.iter().map(|tool| model.tool(tool)).collect());
        Self { index: Index::new(tools), model: model.map(vectors) }
    }

    pub(crate) fn search(&self, text: &str) -> Vec<Hit> {
        let query = Query { text, keywords: Vec::new() };
        let vector = self.model.as_ref().and_then(|(model, _)| model.vector(text));
        let semantic = self.model.as_ref().zip(vector.as_ref()).map(|((_, tools), query)| Semantic {
            tools,
            query,
            ratio: 0.5,
            max_distance: 1.0,
        });
        self.index.search(&query, semantic.as_ref(), RETURNED)
    }

    pub(crate) fn quality(&self, set: &Set, tokenizer: &CoreBPE) -> Quality {
        let texts: Vec<String> = set.tools.iter().map(ToString::to_string).collect();
        let bytes: Vec<usize> = texts.iter().map(String::len).collect();
        let tokens: Vec<usize> = texts.iter().map(|text| tokenizer.encode_ordinary(text).len()).collect();
        let mut sum = Quality::default();
        for task in &set.queries {
            let started = Instant::now();
            let hits = self.search(&task.text);
            sum.time += started.elapsed();
            sum.saved[0] += saved(&bytes, &hits, TOKEN);
            sum.saved[1] += saved(&tokens, &hits, 1);
            sum.add(task, hits.iter().map(|hit| set.tools[hit.tool]["name"].as_str().unwrap_or_default()));
        }
        sum.mean(set.queries.len())
    }
}

/// The share that these hits save, of tools with these sizes, if so much is a token.
fn saved(sizes: &[usize], hits: &[Hit], token: usize) -> f64 {
    let all = sizes.iter().sum::<usize>() / token;
    let returned = hits.iter().map(|hit| sizes[hit.tool]).sum::<usize>() / token;
    1.0 - returned as f64 / all.max(1) as f64
}

impl Quality {
    fn add<'a>(&mut self, task: &Task, found: impl Iterator<Item = &'a str>) {
        let are_right: Vec<bool> =
            found.map(|name| task.relevant.iter().any(|relevant| relevant == name)).collect();
        for (recall, limit) in self.recall.iter_mut().zip([1, 5, 8]) {
            let right = are_right.iter().take(limit).filter(|is_right| **is_right).count();
            // More than these cannot be found.
            let possible = task.relevant.len().min(limit).max(1);
            *recall += right.min(possible) as f64 / possible as f64;
        }
        let gain = |place: usize| 1.0 / ((place + 2) as f64).log2();
        let gained: f64 = are_right
            .iter()
            .take(5)
            .enumerate()
            .filter(|(_, is_right)| **is_right)
            .map(|(place, _)| gain(place))
            .sum();
        let ideal: f64 = (0..task.relevant.len().clamp(1, 5)).map(gain).sum();
        self.gain += (gained / ideal).min(1.0);
    }

    fn mean(self, count: usize) -> Self {
        let divisor = count.max(1) as f64;
        Self {
            recall: self.recall.map(|sum| sum / divisor),
            gain: self.gain / divisor,
            time: self.time.div_f64(divisor),
            saved: self.saved.map(|sum| sum / divisor),
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, five, eight] = self.recall;
        let (gain, micros) = (self.gain, self.time.as_secs_f64() * 1e6);
        let [bytes, tokens] = self.saved.map(|share| share * 100.0);
        write!(
            formatter,
            "{one:.3} | {five:.3} | {eight:.3} | {gain:.3} | {micros:.0} | {bytes:.1} % | {tokens:.1} %"
        )
    }
}
