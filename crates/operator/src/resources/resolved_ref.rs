//! References to other objects, resolved.

use std::sync::Arc;

use serde::Serialize;
use skep_api::{kinds::ApiKind, refs::SecretKeyRef};
use skep_config::{FieldError, FieldPath, sha256};
use skep_world::{ReadError, Reader, Watched};

use super::{Custom, Keys, Secrets, kind_of};

/// A reference with the object that it leads to.
#[derive(Debug)]
pub(crate) struct ResolvedRef<K> {
    /// The name in the reference.
    pub(crate) name: String,
    /// The resolved object.
    pub(crate) resolution: Resolution<K>,
}

/// What a reference leads to.
#[derive(Debug)]
pub(crate) enum Resolution<K> {
    /// The object.
    Present(Arc<K>),
    /// An object that cannot be parsed, and why.
    Unreadable(String),
    /// Nothing yet. The reader is requeued when the object is created.
    Missing,
}

/// Why a reference cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefError {
    /// The object does not exist, which may change without a change to the referrer.
    Missing(String),
    /// The object is not valid.
    Invalid(String),
}

impl RefError {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Missing(message) | Self::Invalid(message) => message,
        }
    }
}

impl<K: ApiKind> ResolvedRef<K> {
    /// Looks the object up, which also subscribes the reader to it.
    pub(crate) fn resolve(reader: &mut Reader, name: &str) -> Self {
        let resolution = match reader.get::<Custom<K>>(name).map(|entry| entry.cached.object) {
            Some(Ok(object)) => Resolution::Present(object),
            Some(Err(error)) => Resolution::Unreadable(error.to_string()),
            None => Resolution::Missing,
        };
        Self { name: name.into(), resolution }
    }

    /// A reference to an object that exists.
    #[cfg(test)]
    pub(crate) fn present(object: K) -> Self {
        let name = object.meta().name.clone().unwrap_or_default();
        Self { name, resolution: Resolution::Present(Arc::new(object)) }
    }

    /// The object, if it exists and can be parsed.
    pub(crate) fn object(&self) -> Option<&K> {
        match &self.resolution {
            Resolution::Present(object) => Some(object),
            Resolution::Unreadable(_) | Resolution::Missing => None,
        }
    }

    /// The object if it exists and passes the check. Messages name the object that is at fault.
    pub(crate) fn checked(&self, check: impl FnOnce(&K) -> Vec<FieldError>) -> Result<&K, RefError> {
        let kind = kind_of::<K>().kind;
        let name = &self.name;
        match &self.resolution {
            Resolution::Present(object) => match check(object).as_slice() {
                [] => Ok(object),
                errors => {
                    let errors = skep_config::field::joined(errors);
                    Err(RefError::Invalid(format!("{kind} {name} is invalid: {errors}")))
                }
            },
            Resolution::Unreadable(error) => {
                Err(RefError::Invalid(format!("{kind} {name} cannot be parsed: {error}")))
            }
            Resolution::Missing => {
                Err(RefError::Missing(format!("{kind} {name} does not exist in this namespace: create it")))
            }
        }
    }
}

/// The object behind an optional reference.
pub(crate) fn object<K: ApiKind>(reference: &Option<ResolvedRef<K>>) -> Option<&K> {
    reference.as_ref().and_then(ResolvedRef::object)
}

/// The Secret keys that do not exist, of those that fields refer to.
pub(crate) async fn missing_secrets(
    reader: &mut Reader,
    secrets: Vec<(FieldPath, SecretKeyRef)>,
) -> Result<Vec<FieldError>, ReadError> {
    let mut missing = Vec::new();
    for (field, secret) in secrets {
        let message = missing_key::<Secrets>(reader, &secret.name, &secret.key).await?;
        missing.extend(message.map(|message| FieldError::new(field, message)));
    }
    Ok(missing)
}

/// What to do about a key of a Secret or ConfigMap, if it does not exist.
pub(crate) async fn missing_key<W: Watched>(
    reader: &mut Reader,
    name: &str,
    key: &str,
) -> Result<Option<String>, ReadError> {
    let kind = W::kind().kind;
    Ok(match reader.content::<Keys<W>>(name).await? {
        Some(keys) if keys.contains(key) => None,
        Some(_) => Some(format!("{kind} {name} has no key {key}: add it")),
        None => Some(format!("{kind} {name} does not exist: create it with the key {key}")),
    })
}

/// The hash of a spec, by which users see whether a change of a configuration has reached a workload. Its algorithm must
/// never change: every status would be rewritten.
pub(crate) fn config_hash<S: Serialize>(spec: &S) -> String {
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    // Equal specs have the same text.
    value.sort_all_objects();
    sha256(&value.to_string())[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_of_a_configuration_is_the_same_in_every_release() {
        assert_eq!(config_hash(&json!({"b": [1, 2], "a": {"y": null, "x": "é"}})), "1062f9847f7ec428");
    }
}
