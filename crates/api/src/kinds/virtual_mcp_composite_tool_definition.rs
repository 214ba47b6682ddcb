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

/// A VirtualMCPCompositeToolDefinition is a tool that runs a workflow: it calls other tools in order or side by side,
/// asks the user where needed, and makes one answer of it all. A VirtualMCPServer offers it when it is named in
/// spec.config.compositeToolRefs.
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
    /// Whether a workflow can be run.
    pub enum ValidationStatus {
        /// It can be run.
        Valid = "Valid",
        /// It cannot be run: status.validationErrors say why.
        Invalid = "Invalid",
        /// It was not looked at yet.
        #[default]
        Unknown = "Unknown",
    }
}

/// What is known of a VirtualMCPCompositeToolDefinition.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMCPCompositeToolDefinitionStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the workflow can be run.
    pub validation_status: Option<ValidationStatus>,
    /// What is wrong with the workflow, one sentence for each fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub validation_errors: Vec<String>,
    /// The VirtualMCPServers that offer the tool, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::set)]
    pub referencing_virtual_servers: Vec<String>,
    /// The state of the definition, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
