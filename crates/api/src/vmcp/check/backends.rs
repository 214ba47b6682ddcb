//! Backends that are known in advance.

use std::collections::HashSet;

use skep_config::{FieldError, FieldPath};

use super::{auth::ca_bundle, missing};
use crate::vmcp::{Backend, BackendType};

pub(super) fn errors(backends: &[Backend]) -> Vec<FieldError> {
    let mut names = HashSet::new();
    let each = backends.iter().enumerate().flat_map(|(index, backend)| {
        let mut errors = backend_errors(backend);
        if !backend.name.is_empty() && !names.insert(&backend.name) {
            errors.push(FieldError::new("name", format!("duplicate of {:?}", backend.name)));
        }
        let field = FieldPath::from("backends").index(index);
        errors.into_iter().map(move |error| error.within(field.clone())).collect::<Vec<_>>()
    });
    each.collect()
}

fn backend_errors(backend: &Backend) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if backend.name.is_empty() {
        errors.push(missing("name"));
    }
    let host = ["http://", "https://"].iter().find_map(|scheme| backend.url.strip_prefix(scheme));
    if host.is_none_or(|rest| rest.split('/').next().is_none_or(str::is_empty)) {
        errors.push(FieldError::new("url", "must be a URL, as https://host/path"));
    }
    let is_entry = backend.type_ == Some(BackendType::Entry);
    if backend.ca_bundle_path.is_some() && !is_entry {
        errors.push(FieldError::new("caBundlePath", "is for backends of type entry only"));
    } else {
        errors.extend(ca_bundle(backend.ca_bundle_path.as_deref()));
    }
    errors
}
