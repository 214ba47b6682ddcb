//! A tool search, for lists of tools that are too long for a model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{Duration, enums::text_enum, number, unset};

text_enum! {
    /// The type of an embedding service.
    pub enum EmbeddingProvider {
        /// Hugging Face's Text Embeddings Inference, which an EmbeddingServer runs.
        #[default]
        Tei = "tei",
        /// A service with the API of OpenAI. Its key is taken from the environment variable OPENAI_API_KEY.
        OpenAi = "openai",
    }
}

/// A tool search. Clients see two tools: find_tool, which searches, and call_tool, which calls a tool that was found. It
/// finds tools by their words without any service. A service or a model adds a search by meaning.
#[apply(
    Option<EmbeddingProvider> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<Duration> => #[serde(default, deserialize_with = "unset::non_zero_duration")],
    Option<i64> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.embeddingHeaders) || (has(self.embeddingProvider) && self.embeddingProvider == 'openai')",
        "message": "embeddingHeaders are only sent with embeddingProvider openai: set that, or leave them out",
    },
    {
        "rule": r"!has(self.embeddingHeaders) || self.embeddingHeaders.all(k, k.matches('^[!#$%&\\x27*+.^_\\x60|~0-9A-Za-z-]+$') && !(k.lowerAscii() in ['authorization', 'content-type']))",
        "message": "embeddingHeaders must have names of HTTP headers other than Authorization and Content-Type, which are set already",
    },
]))]
pub struct Optimizer {
    /// The type of embeddingService.
    #[schemars(extend("default" = EmbeddingProvider::default()))]
    pub embedding_provider: Option<EmbeddingProvider>,
    /// The URL of an embedding service, for semantic search in addition to keywords. spec.embeddingServerRef takes
    /// precedence. While the service is unavailable, the search uses keywords only.
    pub embedding_service: Option<String>,
    /// How long a request to the service may take.
    #[schemars(extend("default" = "30s"))]
    pub embedding_service_timeout: Option<Duration>,
    /// The name of the model. Needed with embeddingProvider openai; a service of type tei has one model only.
    pub embedding_model: Option<String>,
    /// A folder with a static embedding model, for semantic search within the process, without a service: the files
    /// model.safetensors and tokenizer.json, as model2vec writes them. Mount it with spec.podTemplateSpec. An embedding
    /// service takes precedence.
    #[schemars(regex(pattern = "^/"))]
    pub embedding_model_path: Option<String>,
    /// Headers for requests to the service, with embeddingProvider openai. They are stored in plain text: do not put
    /// secrets here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {
        "type": "string",
        "pattern": r"^[^\x00-\x08\x0A-\x1F\x7F]*$",
        "minLength": 1,
        "maxLength": 8192,
    }))]
    pub embedding_headers: BTreeMap<String, String>,
    /// The maximum number of tools that a search returns. The default is 8.
    #[schemars(range(min = 1, max = 50), transform = number::plain_integer)]
    pub max_tools_to_return: Option<i64>,
    /// The share of semantic results, from 0 to 1; the rest are keyword results. The default is "0.5".
    #[schemars(regex(pattern = "^([0-9]*[.])?[0-9]+$"))]
    pub hybrid_search_semantic_ratio: Option<String>,
    /// The maximum semantic distance of a result, from 0 for identical to 2 for opposite. The default is "1.0".
    #[schemars(regex(pattern = "^([0-9]*[.])?[0-9]+$"))]
    pub semantic_distance_threshold: Option<String>,
    /// Tools that clients see and call beside find_tool and call_tool, by the names that clients use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 50))]
    pub pinned_tools: Vec<String>,
    /// The description of find_tool, which makes models use it. The default says when to search, and for what.
    pub find_tool_description: Option<String>,
    /// The description of call_tool. The default says which tools it calls.
    pub call_tool_description: Option<String>,
}
