//! Backends that are known in advance.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::{enums::text_enum, unset};

text_enum! {
    /// The MCP transport of a backend.
    pub enum BackendTransport {
        /// HTTP with server-sent events, the deprecated transport of 2024.
        Sse = "sse",
        /// Streamable HTTP.
        #[default]
        StreamableHttp = "streamable-http",
    }
}

text_enum! {
    /// What a backend is.
    pub enum BackendType {
        /// A server that runs in the cluster, or a proxy that does.
        #[default]
        Workload = "",
        /// A server elsewhere, reached directly, as an MCPServerEntry describes it.
        Entry = "entry",
    }
}

/// A backend server.
#[apply(
    Option<BackendType> => #[serde(default, deserialize_with = "unset::non_zero")],
    Option<String> => #[serde(default, deserialize_with = "unset::non_zero")],
)]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backend {
    /// The name of the backend, unique among them. Other parts of the configuration refer to it.
    pub name: String,
    /// The address of the backend's MCP endpoint.
    #[schemars(regex(pattern = "^https?://"))]
    pub url: String,
    /// The MCP transport of the backend.
    pub transport: BackendTransport,
    /// What the backend is. Leave it out unless it is an entry.
    #[serde(rename = "type")]
    pub type_: Option<BackendType>,
    /// A file with the certificates of a private authority that signed the backend's certificate, as an absolute
    /// path. Only for type entry.
    pub ca_bundle_path: Option<String>,
    /// Metadata of the backend. The key group is always set to the name of the group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}
