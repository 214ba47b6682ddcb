//! The status that the configuration kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    conditions::{self, Conditions},
    list,
    refs::WorkloadReference,
};

/// What is known of a configuration object.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// A hash of the spec when it was last valid. Workloads that use it report the same hash in their own status, so
    /// that one can tell whether a change has arrived.
    pub config_hash: Option<String>,
    /// The workloads that use this object, sorted by kind and name. While there are any, deleting the object waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::by_kind_and_name)]
    pub referencing_workloads: Vec<WorkloadReference>,
    /// The state of the object, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions::schema")]
    pub conditions: Conditions,
}
