//! Strategic merge patches of pod templates, as the Kubernetes API server applies them.
//!
//! A user's `podTemplateSpec` is merged into the pod template of a workload: objects merge field by field, null
//! deletes, lists merge by the key that the Kubernetes API gives them or are replaced, and the directives of
//! `application/strategic-merge-patch+json` (`$patch`, `$retainKeys`, `$setElementOrder/...`,
//! `$deleteFromPrimitiveList/...`) do what they do there. Nothing here does I/O.
//!
//! A merged list has the order of the patch, and an item that only the template has keeps its position before the next
//! one that the patch names. So a container that the patch adds comes first, unless the patch names one of the
//! template's before it:
//!
//! ```
//! # use serde_json::json;
//! let template = json!({"spec": {"containers": [{"name": "mcp", "image": "mcp:1"}]}});
//! let patch = json!({"spec": {"containers": [{"name": "mcp", "tty": true}, {"name": "log", "image": "log:1"}]}});
//! assert_eq!(
//!     skep_strategic_merge::merge_pod_template(template, &patch)?,
//!     json!({"spec": {"containers": [
//!         {"name": "mcp", "image": "mcp:1", "tty": true},
//!         {"name": "log", "image": "log:1"},
//!     ]}}),
//! );
//! # Ok::<(), skep_strategic_merge::Error>(())
//! ```

mod directive;
mod error;
mod list;
mod literal;
mod merge;
mod path;
mod table;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Map, Value};

pub use error::Error;
use error::{Problem, kind, not};
use path::Path;

/// The template with the patch applied.
///
/// [`validate_pod_template`] validates the patch first: the API server decodes the result, so a patch of wrong types
/// fails there as well.
pub fn merge_pod_template(base: Value, patch: &Value) -> Result<Value, Error> {
    validate_pod_template(patch)?;
    let mut template = match base {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => {
            return Err(Path::Root.error(Problem::Mismatch { actual: "an object", template: kind(&other) }));
        }
    };
    merge::object(&mut template, object(patch)?, &table::POD_TEMPLATE_SPEC, &Path::Root)?;
    Ok(Value::Object(template))
}

/// Whether every field of the patch that Kubernetes defines has the right type.
///
/// A patch has only the fields that it changes: required fields may be missing, nulls and directives may be anywhere,
/// and a field of a newer Kubernetes is left to the API server.
pub fn validate_pod_template(patch: &Value) -> Result<(), Error> {
    let literal = Value::Object(literal::literal_object(object(patch)?));
    let decoded: Result<PodTemplateSpec, _> = serde_path_to_error::deserialize(literal);
    decoded.map(drop).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { Path::Root.to_string() } else { Path::Root.field(&path).to_string() };
        Error { path, problem: Problem::Undecodable(error.into_inner().to_string()) }
    })
}

fn object(patch: &Value) -> Result<&Map<String, Value>, Error> {
    patch.as_object().ok_or_else(|| Path::Root.error(not("an object", patch)))
}
