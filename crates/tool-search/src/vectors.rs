//! Vectors of texts, and how far they are apart.

/// The vectors of a tool, of length 1 each.
#[derive(Clone, Debug)]
pub struct ToolVectors {
    whole: Vec<f32>,
    /// Of its name alone, where a model is cheap enough to make two.
    name: Option<Vec<f32>>,
}

impl ToolVectors {
    /// Those of a tool that has one, of all that it is.
    pub fn new(whole: Vec<f32>) -> Self {
        Self { whole, name: None }
    }

    pub(crate) fn with_name(self, name: Option<Vec<f32>>) -> Self {
        Self { name, ..self }
    }

    /// How like a query is: as its whole text is, and half of that by its name, if that is more like the query. A long
    /// description hides what a tool is for.
    pub(crate) fn likeness(&self, query: &[f32]) -> Option<f32> {
        let whole = cosine(&self.whole, query)?;
        let name = self.name.as_ref().and_then(|name| cosine(name, query)).unwrap_or(whole);
        Some((whole + whole.max(name)) / 2.0)
    }
}

/// The same vector with the length 1, if it has one.
pub fn normalized(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !length.is_normal() {
        return None;
    }
    vector.iter_mut().for_each(|value| *value /= length);
    Some(vector)
}

/// The cosine of the angle between two vectors of length 1. Those of different models have none.
fn cosine(one: &[f32], other: &[f32]) -> Option<f32> {
    if one.len() != other.len() {
        return None;
    }
    // Eight sums at a time, which the compiler computes at once.
    let mut sums = [0.0; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(one, other)| one * other).sum();
    for (one, other) in ones.zip(others) {
        for (sum, (one, other)) in sums.iter_mut().zip(one.iter().zip(other)) {
            *sum += one * other;
        }
    }
    Some(sums.iter().sum::<f32>() + rest)
}
