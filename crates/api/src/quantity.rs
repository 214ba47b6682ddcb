//! Amounts of CPU, memory and storage.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A Kubernetes quantity such as `500m` or `128Mi`, checked at admission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "x-kubernetes-validations": [{
                // Other operators treated "" as "not set", so it remains allowed.
                "rule": "self == '' || isQuantity(self)",
                "message": "must be a Kubernetes quantity, such as 500m, 1, 128Mi or 2Gi",
            }],
        })
    }
}
