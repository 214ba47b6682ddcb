//! Search by meaning, joined with that by words.

use crate::ToolVectors;

/// What a query means, and what the tools of an index do.
#[derive(Clone, Copy, Debug)]
pub struct Semantic<'a> {
    /// The vectors of each tool, in the order of the index. A tool may have none.
    pub tools: &'a [Option<ToolVectors>],
    /// The vector of the query, of length 1.
    pub query: &'a [f32],
    /// How much meaning counts, from 0 to 1. Words count the rest.
    pub ratio: f32,
    /// How far a tool may be from the query, from 0 to 2, to count at all.
    pub max_distance: f32,
}

impl Semantic<'_> {
    /// Joins the scores by words with those by meaning. Each are compared with the best of their kind: how good that is by
    /// itself depends on the length of the query, and on the model.
    pub(crate) fn join(&self, scores: &mut [f32]) {
        let near: Vec<f32> = self.tools.iter().map(|tool| self.nearness(tool.as_ref())).collect();
        let ratio = self.ratio.clamp(0.0, 1.0);
        let (best_score, best_nearness) = (best(scores), best(&near));
        for (place, score) in scores.iter_mut().enumerate() {
            let nearness = near.get(place).copied().unwrap_or_default();
            *score = (1.0 - ratio) * *score / best_score + ratio * nearness / best_nearness;
        }
    }

    /// How near a tool is: 0 if it is too far to count.
    fn nearness(&self, tool: Option<&ToolVectors>) -> f32 {
        let likeness = tool.and_then(|tool| tool.likeness(self.query)).unwrap_or_default();
        if 1.0 - likeness > self.max_distance { 0.0 } else { likeness.max(0.0) }
    }
}

/// The highest of some scores, by which others can be divided.
fn best(scores: &[f32]) -> f32 {
    let best = scores.iter().copied().fold(0.0, f32::max);
    if best > 0.0 { best } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Index, Query, Tool};

    #[test]
    fn both_kinds_count_by_the_ratio_and_what_is_far_does_not() {
        let tools = ["write_letter", "send_mail", "brew_coffee"];
        let tools = tools.map(|name| Tool { name: name.into(), ..Tool::default() });
        let index = Index::new(&tools);
        let vectors =
            [[0.8, 0.6], [0.6, 0.8], [0.0, 1.0]].map(|vector| Some(ToolVectors::new(vector.into())));
        let search = |ratio: f32, max_distance: f32| -> Vec<usize> {
            let semantic = Semantic { tools: &vectors, query: &[1.0, 0.0], ratio, max_distance };
            let query = Query { text: "please mail it", keywords: vec![] };
            index.search(&query, Some(&semantic), 8).into_iter().map(|hit| hit.tool).collect()
        };
        assert_eq!(search(0.5, 1.0), [1, 0]);
        assert_eq!(search(1.0, 1.0), [0, 1]);
        assert_eq!(search(1.0, 0.3), [0]);
        assert_eq!(search(0.0, 1.0), [1]);
        assert_eq!(search(0.5, 0.1), [1]);
    }

    #[test]
    fn vectors_of_another_model_do_not_count() {
        let index = Index::new(&[Tool { name: "a".into(), ..Tool::default() }]);
        let vectors = [Some(ToolVectors::new(vec![1.0, 0.0, 0.0]))];
        let semantic = Semantic { tools: &vectors, query: &[1.0], ratio: 1.0, max_distance: 2.0 };
        assert_eq!(index.search(&Query { text: "b", keywords: vec![] }, Some(&semantic), 8), []);
    }
}
