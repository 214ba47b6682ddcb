//! The policies of a workload, from wherever its spec has them.

use std::collections::BTreeMap;

use skep_api::{authz::AuthzConfig, kinds::MCPAuthzConfig};
use skep_config::{FieldError, Json};

use crate::{
    config_refs,
    resources::{ResolvedRef, object},
};

/// Why there are no policies to enforce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PoliciesError {
    /// The ConfigMap does not exist.
    MissingConfigMap(FieldError),
    /// The ConfigMap does not hold valid policies.
    InvalidConfigMap(FieldError),
    /// Policies in the spec, or in an MCPAuthzConfig, are invalid: every mistake.
    Invalid(Vec<FieldError>),
}

impl PoliciesError {
    pub(crate) fn into_errors(self) -> Vec<FieldError> {
        match self {
            Self::MissingConfigMap(error) | Self::InvalidConfigMap(error) => vec![error],
            Self::Invalid(errors) => errors,
        }
    }

    /// The first of all mistakes.
    pub(crate) fn into_error(self) -> FieldError {
        let first = self.into_errors().into_iter().next();
        first.unwrap_or_else(|| FieldError::new("authzConfig", "the policies are invalid"))
    }

    /// The same mistakes, in a field that is part of `parent`.
    pub(crate) fn within(self, parent: &'static str) -> Self {
        match self {
            Self::MissingConfigMap(error) => Self::MissingConfigMap(error.within(parent)),
            Self::InvalidConfigMap(error) => Self::InvalidConfigMap(error.within(parent)),
            Self::Invalid(errors) => {
                Self::Invalid(errors.into_iter().map(|error| error.within(parent)).collect())
            }
        }
    }
}

/// The document with the policies: of the MCPAuthzConfig if there is one, else of the spec or of the ConfigMap that it
/// names, whose data is given if it exists.
pub(crate) fn policies(
    reference: &Option<ResolvedRef<MCPAuthzConfig>>,
    config: Option<&AuthzConfig>,
    data: Option<&BTreeMap<String, String>>,
) -> Result<Option<Json>, PoliciesError> {
    const FIELD: &str = "authzConfig.configMap";
    if let Some(authz) = object(reference) {
        let document = config_refs::authz::document(&authz.spec);
        return document
            .map(Some)
            .map_err(|error| PoliciesError::Invalid(vec![error.within("authzConfigRef")]));
    }
    let Some(config) = config else { return Ok(None) };
    if config.inline.is_some() {
        return config_refs::authz::inline_document(config).map(Some).map_err(PoliciesError::Invalid);
    }
    let Some(source) = &config.config_map else { return Ok(None) };
    let Some(data) = data else {
        let message = format!("ConfigMap {} does not exist: create it", source.name);
        return Err(PoliciesError::MissingConfigMap(FieldError::new(FIELD, message)));
    };
    let Some(text) = data.get(source.key()) else {
        let message = format!("ConfigMap {} has no key {}: add it", source.name, source.key());
        return Err(PoliciesError::InvalidConfigMap(FieldError::new(FIELD, message)));
    };
    config_refs::authz::config_map_document(config, text).map(Some).map_err(PoliciesError::InvalidConfigMap)
}
