//! The tokenizer of a model, as Hugging Face's tokenizer.json describes it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::{bpe::Bpe, word_piece::WordPiece};

/// Splits words into tokens.
#[derive(Debug)]
pub(super) enum Tokenizer {
    Bpe(Bpe),
    WordPiece(WordPiece),
}

#[derive(Deserialize)]
struct File {
    model: Model,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
}

#[derive(Deserialize)]
pub(super) struct Model {
    #[serde(rename = "type", default)]
    kind: String,
    pub(super) vocab: HashMap<String, u32>,
    #[serde(default)]
    pub(super) merges: Vec<Merge>,
    #[serde(default)]
    pub(super) continuing_subword_prefix: Option<String>,
}

/// Two tokens that become one.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Merge {
    Joined(String),
    Pair(String, String),
}

impl Tokenizer {
    pub(super) fn parse(file: &[u8]) -> Result<Self, String> {
        let unsupported =
            |what: &str| format!("{what} is not supported: it must be WordPiece, or BPE with ▁");
        let document: Value = serde_json::from_slice(file).map_err(|error| error.to_string())?;
        if document["model"]["type"] == "Unigram" {
            return Err(unsupported("Unigram"));
        }
        let File { model, normalizer, pre_tokenizer } =
            File::deserialize(document).map_err(|error| error.to_string())?;
        match &*model.kind {
            "BPE" if mentions(&pre_tokenizer, "ByteLevel") => Err(unsupported("BPE of bytes")),
            "BPE" => Ok(Self::Bpe(Bpe::new(model)?)),
            "WordPiece" => Ok(Self::WordPiece(WordPiece::new(
                model,
                mentions(&normalizer, "Lowercase") || lowers(&normalizer),
            ))),
            other => Err(unsupported(other)),
        }
    }

    /// Passes on each token of a word.
    pub(super) fn tokens(&self, word: &str, each: impl FnMut(u32)) {
        match self {
            Self::Bpe(bpe) => bpe.tokens(word, each),
            Self::WordPiece(pieces) => pieces.tokens(word, each),
        }
    }
}

/// Whether a part of the tokenizer, or a part of that, is of this type.
fn mentions(part: &Value, kind: &str) -> bool {
    match part {
        Value::Object(fields) => {
            fields.get("type").is_some_and(|type_| type_ == kind)
                || fields.values().any(|part| mentions(part, kind))
        }
        Value::Array(parts) => parts.iter().any(|part| mentions(part, kind)),
        _ => false,
    }
}

fn lowers(normalizer: &Value) -> bool {
    match normalizer {
        Value::Object(fields) => {
            fields.get("lowercase") == Some(&Value::Bool(true)) || fields.values().any(lowers)
        }
        Value::Array(parts) => parts.iter().any(lowers),
        _ => false,
    }
}
