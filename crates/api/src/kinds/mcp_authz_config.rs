//! MCPAuthzConfig: authorization policies to share.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RawObject, config_status::ConfigStatus};

/// An MCPAuthzConfig holds authorization policies that several servers share by authzConfigRef. Once a server uses
/// one, requests that no policy permits are denied.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPAuthzConfig",
    plural = "mcpauthzconfigs",
    shortname = "authzcfg",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "ConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MCPAuthzConfigSpec {
    /// The authorizer: cedarv1 for Cedar policies that the proxy evaluates itself, or httpv1 for a policy decision
    /// point that it queries over HTTP.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub type_: String,
    /// The configuration of the authorizer. For cedarv1: policies (a list of Cedar policies), entities_json,
    /// group_claim_name, role_claim_name and group_entity_type. For httpv1: http (url, timeout in seconds,
    /// insecure_skip_verify), context (include_args, include_operation) and claim_mapping (mpe or standard).
    pub config: RawObject,
}
