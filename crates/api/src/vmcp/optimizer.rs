//! A search for tools, in place of a list too long to read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, enums::text_enum, number};

text_enum! {
    /// What kind of service turns texts into vectors.
    pub enum EmbeddingProvider {
        /// Hugging Face's Text Embeddings Inference, which an EmbeddingServer runs.
        #[default]
        Tei = "tei",
        /// A service with the API of OpenAI. Its key is taken from the environment variable OPENAI_API_KEY.
        OpenAi = "openai",
    }
}

/// A search for tools. Clients see two tools: find_tool, which searches, and call_tool, which calls what was found.
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
    /// What kind of service embeddingService is.
    #[schemars(extend("default" = EmbeddingProvider::default()))]
    pub embedding_provider: Option<EmbeddingProvider>,
    /// The address of the service that turns texts into vectors, so that the search goes by meaning and not by words
    /// alone. A VirtualMCPServer needs either it or spec.embeddingServerRef, which goes before it.
    pub embedding_service: Option<String>,
    /// How long a request to the service may take.
    #[schemars(extend("default" = "30s"))]
    pub embedding_service_timeout: Option<Duration>,
    /// The model to ask for. Needed with embeddingProvider openai; a service of type tei has one model only.
    pub embedding_model: Option<String>,
    /// Headers for requests to the service, with embeddingProvider openai. They can be read by everyone who can read
    /// this object: do not put secrets here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {
        "type": "string",
        "pattern": r"^[^\x00-\x08\x0A-\x1F\x7F]*$",
        "minLength": 1,
        "maxLength": 8192,
    }))]
    pub embedding_headers: BTreeMap<String, String>,
    /// How many tools a search finds at most. The default is 8.
    #[schemars(range(min = 1, max = 50), transform = number::plain_integer)]
    pub max_tools_to_return: Option<i64>,
    /// Which part of the tools found goes by meaning, from 0 to 1; the rest goes by words. The default is "0.5".
    #[schemars(regex(pattern = "^([0-9]*[.])?[0-9]+$"))]
    pub hybrid_search_semantic_ratio: Option<String>,
    /// How far in meaning a tool may be from what was searched for, from 0 for the same to 2 for the opposite. The
    /// default is "1.0".
    #[schemars(regex(pattern = "^([0-9]*[.])?[0-9]+$"))]
    pub semantic_distance_threshold: Option<String>,
}
