//! Objects that others refer to.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use serde::Serialize;
use skep_world::{Reader, Watched};

use crate::watched::{Custom, CustomResource};

/// A reference, followed.
#[derive(Clone, Debug)]
pub(crate) struct Reference<K> {
    /// The name that was looked for.
    pub(crate) name: String,
    /// What was found.
    pub(crate) found: Found<K>,
}

/// What a reference leads to.
#[derive(Clone, Debug)]
pub(crate) enum Found<K> {
    /// The object.
    Here(Arc<K>),
    /// An object that cannot be read, and why.
    Unreadable(String),
    /// Nothing yet. Whoever looked is woken when it comes.
    Missing,
}

impl<K> Reference<K> {
    /// Follows a reference to a custom resource.
    pub(crate) fn follow<W>(reader: &mut Reader, name: &str) -> Self
    where
        W: CustomResource<Object = K> + Watched<Kept = Custom<K>>,
    {
        let found = match reader.get::<W>(name).map(|entry| entry.kept.object) {
            Some(Ok(object)) => Found::Here(object),
            Some(Err(error)) => Found::Unreadable(error),
            None => Found::Missing,
        };
        Self { name: name.into(), found }
    }

    /// The object, if it is there and can be read.
    pub(crate) fn object(&self) -> Option<&K> {
        match &self.found {
            Found::Here(object) => Some(object),
            Found::Unreadable(_) | Found::Missing => None,
        }
    }

    /// The object if it passes the check, or what is wrong with the reference.
    pub(crate) fn checked(
        &self,
        kind: &str,
        check: impl FnOnce(&K) -> Result<(), String>,
    ) -> Result<&K, Problem> {
        match &self.found {
            Found::Here(object) => match check(object) {
                Ok(()) => Ok(object),
                Err(error) => Err(Problem::Invalid(format!("{kind} {} is not valid: {error}", self.name))),
            },
            Found::Unreadable(error) => {
                Err(Problem::Invalid(format!("{kind} {} cannot be read: {error}", self.name)))
            }
            Found::Missing => Err(Problem::Missing(format!(
                "there is no {kind} {} in this namespace: create it",
                self.name
            ))),
        }
    }
}

/// The object behind a reference, if there is a reference and the object is there and can be read.
pub(crate) fn object<K>(reference: &Option<Reference<K>>) -> Option<&K> {
    reference.as_ref().and_then(Reference::object)
}

/// Why a reference cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It leads nowhere.
    Missing(String),
    /// What it leads to is not valid.
    Invalid(String),
}

impl Problem {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Missing(message) | Self::Invalid(message) => message,
        }
    }
}

/// The hash of a configuration's spec, by which one can see whether a change has arrived.
pub(crate) fn config_hash<S: Serialize>(spec: &S) -> String {
    let mut hasher = DefaultHasher::new();
    let mut value = serde_json::to_value(spec).unwrap_or_default();
    // So that the text is the same for the same spec.
    value.sort_all_objects();
    value.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
