//! A static model: a vector for each token, whose mean is the vector of a text. model2vec and wordllama write such models.

mod bpe;
mod safetensors;
mod tokenizer;
mod word_piece;

use std::{io, path::Path};

use safetensors::Matrix;
use tokenizer::Tokenizer;

use crate::{Tool, ToolVectors, normalized, words};

/// The files of a model, as they are named where models are published.
const WEIGHTS: &str = "model.safetensors";
const TOKENIZER: &str = "tokenizer.json";
/// How much of a text has a part in its vector, in bytes.
const TEXT: usize = 4 << 10;

/// A static model, in memory.
#[derive(Debug)]
pub struct StaticModel {
    matrix: Matrix,
    tokenizer: Tokenizer,
}

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct ModelError {
    file: &'static str,
    reason: String,
}

impl ModelError {
    fn new(file: &'static str, reason: impl Into<String>) -> Self {
        Self { file, reason: reason.into() }
    }
}

impl StaticModel {
    /// Reads a model from a folder that has its matrix, model.safetensors, and tokenizer.json.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let read = |file: &'static str| {
            let wrong = |error: io::Error| ModelError::new(file, error.to_string());
            std::fs::read(folder.join(file)).map_err(wrong)
        };
        Self::new(&read(WEIGHTS)?, &read(TOKENIZER)?)
    }

    fn new(weights: &[u8], tokenizer: &[u8]) -> Result<Self, ModelError> {
        let matrix = Matrix::parse(weights).map_err(|reason| ModelError::new(WEIGHTS, reason))?;
        let tokenizer = Tokenizer::parse(tokenizer).map_err(|reason| ModelError::new(TOKENIZER, reason))?;
        Ok(Self { matrix, tokenizer })
    }

    /// The vector of a text, of length 1. A text without a known word has none.
    pub fn vector(&self, text: &str) -> Option<Vec<f32>> {
        let mut sum = vec![0.0; self.matrix.width()];
        let text = &text[..text.floor_char_boundary(TEXT)];
        for word in words::plain(text) {
            self.tokenizer.tokens(word, |token| {
                let row = self.matrix.row(token);
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            });
        }
        normalized(sum)
    }

    /// The vectors of a tool.
    pub fn tool(&self, tool: &Tool<'_>) -> Option<ToolVectors> {
        let whole = self.vector(&format!("{} {} {}", tool.name, tool.title, tool.description))?;
        Some(ToolVectors::new(whole).with_name(self.vector(&tool.name)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A file with one tensor of these values, two for each token.
    fn weights(dtype: &str, bytes: &[u8], rows: usize) -> Vec<u8> {
        let header = json!({
            "__metadata__": {"format": "pt"},
            "embeddings": {"dtype": dtype, "shape": [rows, 2], "data_offsets": [0, bytes.len()]},
        });
        let header = header.to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), bytes].concat()
    }

    fn singles(values: &[f32]) -> Vec<u8> {
        weights(
            "F32",
            &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>(),
            values.len() / 2,
        )
    }

    fn vector(model: &StaticModel, text: &str) -> Vec<f32> {
        model.vector(text).unwrap_or_default().iter().map(|value| (value * 100.0).round() / 100.0).collect()
    }

    #[test]
    fn a_text_has_the_mean_of_its_pieces() {
        let tokenizer = json!({
            "normalizer": {"type": "BertNormalizer", "lowercase": true},
            "model": {"type": "WordPiece", "vocab": {"mail": 0, "send": 1, "##er": 2, "x": 3}},
        });
        let model =
            StaticModel::new(&singles(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]), tokenizer.to_string().as_bytes());
        let model = model.unwrap();
        assert_eq!(vector(&model, "Mail"), [1.0, 0.0]);
        assert_eq!(vector(&model, "sendMail"), [0.71, 0.71]);
        assert_eq!(vector(&model, "SENDER mail"), [0.71, 0.71]);
        assert_eq!(vector(&model, "sender"), [0.45, 0.89]);
        assert_eq!(model.vector("zebra"), None);
        assert_eq!(model.vector("x"), None, "the matrix has no row for it");
        assert_eq!(model.vector(""), None);
    }

    #[test]
    fn pairs_are_joined_in_their_order_and_unknown_characters_are_bytes() {
        let vocab = json!({"▁": 0, "a": 1, "b": 2, "▁a": 3, "ab": 4, "<0xC3>": 5, "<0xA9>": 6});
        for merges in [json!(["▁ a", "a b"]), json!([["▁", "a"], ["a", "b"]])] {
            let tokenizer = json!({"model": {"type": "BPE", "vocab": vocab, "merges": merges}}).to_string();
            let Tokenizer::Bpe(bpe) = Tokenizer::parse(tokenizer.as_bytes()).unwrap() else { panic!() };
            let tokens = |word: &str| {
                let mut tokens = Vec::new();
                bpe.tokens(word, |token| tokens.push(token));
                tokens
            };
            assert_eq!(tokens("ab"), [3, 2]);
            assert_eq!(tokens("bab"), [0, 2, 4]);
            assert_eq!(tokens("é"), [0, 5, 6]);
        }
    }

    #[test]
    fn halves_are_read_as_numbers() {
        let tokenizer = json!({"model": {"type": "WordPiece", "vocab": {"a": 0}}}).to_string();
        let half: Vec<u8> = [0x3c00_u16, 0xbc00].iter().flat_map(|bits| bits.to_le_bytes()).collect();
        let brain: Vec<u8> = [0x3f80_u16, 0xbf80].iter().flat_map(|bits| bits.to_le_bytes()).collect();
        for (dtype, bytes) in [("F16", half), ("BF16", brain)] {
            let model = StaticModel::new(&weights(dtype, &bytes, 1), tokenizer.as_bytes()).unwrap();
            assert_eq!(vector(&model, "a"), [0.71, -0.71], "{dtype}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_that_names_it() {
        let good = json!({"model": {"type": "WordPiece", "vocab": {}}}).to_string();
        let error = |weights: &[u8], tokenizer: &str| {
            StaticModel::new(weights, tokenizer.as_bytes()).unwrap_err().to_string()
        };
        assert_eq!(error(b"", &good), "model.safetensors: it is too short");
        assert_eq!(
            error(&u64::MAX.to_le_bytes(), &good),
            "model.safetensors: it is too short for its header"
        );
        assert_eq!(
            error(&weights("F32", &[0; 4], 1), &good),
            "model.safetensors: the shape of its tensor does not fit its size"
        );
        assert!(error(&weights("I8", &[0; 2], 1), &good).contains("F32, F16 or BF16"));
        let unigram = json!({"model": {"type": "Unigram", "vocab": [["a", -1.0]]}}).to_string();
        assert!(
            error(&singles(&[1.0, 0.0]), &unigram).starts_with("tokenizer.json: Unigram is not supported")
        );
        assert!(
            StaticModel::open(Path::new("/nonexistent"))
                .unwrap_err()
                .to_string()
                .starts_with("model.safetensors: ")
        );
    }
}
