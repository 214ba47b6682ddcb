//! VirtualMCPCompositeToolDefinition: a composite tool that several VirtualMCPServers can offer.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    conditions::{self, Conditions},
    enums::text_enum,
    list,
    vmcp::CompositeTool,
};

/// A VirtualMCPCompositeToolDefinition is a tool that runs a workflow: it calls other tools in sequence or in
/// parallel, prompts the user where needed, and combines the results into one. A VirtualMCPServer offers it when it
/// is named in spec.config.compositeToolRefs.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "VirtualMCPCompositeToolDefinition",
    plural = "virtualmcpcompositetooldefinitions",
    shortname = "vmcpctd",
    shortname = "compositetool",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "VirtualMCPCompositeToolDefinitionStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Workflow", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.validationStatus"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    )
)]
pub struct VirtualMCPCompositeToolDefinitionSpec {
    /// The tool and its workflow.
    #[serde(flatten)]
    pub tool: CompositeTool,
}

text_enum! {
    /// Whether a workflow is valid.
    pub enum ValidationStatus {
        /// It is valid.
        Valid = "Valid",
        /// It is invalid: see status.validationErrors.
        Invalid = "Invalid",
        /// It has not been validated yet.
        #[default]
        Unknown = "Unknown",
    }
}

/// The observed state of a VirtualMCPCompositeToolDefinition.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMCPCompositeToolDefinitionStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// Whether the workflow is valid.
    pub validation_status: Option<ValidationStatus>,
    /// The validation errors of the workflow, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub validation_errors: Vec<String>,
    /// The VirtualMCPServers that offer the tool, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::set)]
    pub referencing_virtual_servers: Vec<String>,
    /// The conditions of the definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
