//! The status that the configuration kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    conditions::{self, Conditions},
    list,
    refs::WorkloadReference,
};

/// The observed state of a configuration object.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    /// The generation of the spec that this status was computed from.
    pub observed_generation: Option<i64>,
    /// A hash of the spec when it was last valid. Workloads that use it report the same hash in their own status,
    /// which shows whether a change has been applied.
    pub config_hash: Option<String>,
    /// The workloads that use this object, sorted by kind and name. While there are any, deletion of the object is
    /// blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_kind_and_name)]
    pub referencing_workloads: Vec<WorkloadReference>,
    /// The conditions of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
