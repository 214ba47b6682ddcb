//! Authorization policies in the spec of a workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{enums::text_enum, list};

text_enum! {
    /// Where the policies of an [`AuthzConfig`] are.
    pub enum AuthzConfigType {
        /// In a ConfigMap.
        #[default]
        ConfigMap = "configMap",
        /// In the object itself.
        Inline = "inline",
    }
}

/// Policies that decide which requests are allowed. Once set, requests that no policy permits are denied.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'configMap' ? has(self.configMap) : !has(self.configMap)",
        "message": "configMap must be set when type is configMap, and left out otherwise",
    },
    {
        "rule": "self.type == 'inline' ? has(self.inline) : !has(self.inline)",
        "message": "inline must be set when type is inline, and left out otherwise",
    },
]))]
pub struct AuthzConfig {
    /// Where the policies are.
    #[serde(rename = "type")]
    #[schemars(required, extend("default" = AuthzConfigType::default()))]
    pub type_: Option<AuthzConfigType>,
    /// The ConfigMap that holds the policies. Set it with type configMap.
    pub config_map: Option<AuthzConfigMap>,
    /// The policies, inline. Set it with type inline.
    pub inline: Option<InlineAuthz>,
    /// The token claim that lists the groups of the caller. Overrides the one in the policy document.
    #[schemars(length(max = 253))]
    pub group_claim_name: Option<String>,
    /// The token claim that lists the roles of the caller. Overrides the one in the policy document.
    #[schemars(length(max = 253))]
    pub role_claim_name: Option<String>,
    /// The Cedar entity type that groups appear as in policies. The default is THVGroup.
    #[schemars(length(max = 63), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub group_entity_type: Option<String>,
}

impl AuthzConfig {
    /// Where the policies are.
    pub fn type_(&self) -> AuthzConfigType {
        self.type_.unwrap_or_default()
    }
}

/// A ConfigMap with an authorization document in JSON or YAML.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthzConfigMap {
    /// The name of the ConfigMap, in the same namespace.
    pub name: String,
    /// The key within the ConfigMap that holds the document.
    #[schemars(extend("default" = AuthzConfigMap::DEFAULT_KEY))]
    pub key: Option<String>,
}

impl AuthzConfigMap {
    const DEFAULT_KEY: &str = "authz.json";

    /// The key that holds the document.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or(Self::DEFAULT_KEY)
    }
}

/// Cedar policies written into the object.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineAuthz {
    /// Cedar policies. A request is allowed when at least one policy permits it and none forbids it.
    #[schemars(length(min = 1), transform = list::atomic)]
    pub policies: Vec<String>,
    /// Cedar entities that the policies may refer to, as a JSON array.
    #[schemars(extend("default" = InlineAuthz::NO_ENTITIES))]
    pub entities_json: Option<String>,
    /// The upstream identity provider whose token is evaluated. Only a VirtualMCPServer with several upstreams reads
    /// it; elsewhere it has no effect, and a condition reports it.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub primary_upstream_provider: Option<String>,
}

impl InlineAuthz {
    const NO_ENTITIES: &str = "[]";

    /// The entities as a JSON array.
    pub fn entities_json(&self) -> &str {
        self.entities_json.as_deref().unwrap_or(Self::NO_ENTITIES)
    }
}
