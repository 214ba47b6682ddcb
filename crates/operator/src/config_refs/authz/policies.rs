//! The policies of a workload: of the MCPAuthzConfig that it refers to, of its spec, or of a ConfigMap that
//! this names.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use skep_api::{
    authz::AuthzConfig,
    conditions::{AuthzConfigRefValidated, AuthzPrimaryUpstreamProviderIgnored as ProviderIgnored},
    refs::AuthzConfigRef,
};
use skep_authz::Document;
use skep_config::{
    FieldError, FieldPath, Json, labels, paths,
    run_config::{AuthzDocument, Cedar},
};
use skep_world::{ReadError, Reader};

use super::{add_volumes, config_map_document, document, inline_document, inline_file, warning};
use crate::{
    build::{Identity, Volumes},
    config_refs::{ConfigRef, RefReasons},
    reconcile::{BuildError, Condition, Validation},
    resources::Texts,
};

/// The policies of a workload, if it has any.
pub(crate) struct Policies {
    /// The field that `authzConfigRef` and `authzConfig` are part of. Empty for the spec.
    parent: &'static str,
    pub(crate) reference: ConfigRef<AuthzConfigRef>,
    config: Option<AuthzConfig>,
    document: Result<Option<Json>, PoliciesError>,
}

/// Why there are no policies to enforce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoliciesError {
    pub(crate) cause: PoliciesCause,
    /// Every mistake.
    pub(crate) errors: Vec<FieldError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoliciesCause {
    /// The ConfigMap does not exist.
    MissingConfigMap,
    /// The ConfigMap does not hold valid policies.
    InvalidConfigMap,
    /// Policies in the spec, or in an MCPAuthzConfig, are invalid.
    Invalid,
}

impl PoliciesError {
    fn new(cause: PoliciesCause, error: FieldError) -> Self {
        Self { cause, errors: vec![error] }
    }

    /// The first of all mistakes.
    pub(crate) fn into_error(self) -> FieldError {
        let first = self.errors.into_iter().next();
        first.unwrap_or_else(|| FieldError::new("authzConfig", "the policies are invalid"))
    }

    fn within(self, parent: &'static str) -> Self {
        let errors = self.errors.into_iter().map(|error| error.within(parent));
        Self { errors: errors.collect(), ..self }
    }
}

impl Policies {
    /// Looks the MCPAuthzConfig and the ConfigMap up.
    pub(crate) async fn resolve(
        parent: &'static str,
        field: Option<&AuthzConfigRef>,
        config: Option<&AuthzConfig>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let path = FieldPath::from(parent).join("authzConfigRef");
        let reference = ConfigRef::resolve(path, field, reader);
        let data = match config.and_then(|config| config.config_map.as_ref()) {
            Some(source) => reader.content::<Texts>(&source.name).await?,
            None => None,
        };
        let document = whole_document(&reference, config, data.as_deref());
        let document = document.map_err(|error| error.within(parent));
        Ok(Self { parent, reference, config: config.cloned(), document })
    }

    /// Adds the condition about the MCPAuthzConfig, or its problem.
    pub(crate) fn validate_reference(&self, validation: &mut Validation) {
        use AuthzConfigRefValidated::{AuthzConfigRefNotFound, AuthzConfigRefNotValid, AuthzConfigRefValid};
        let reasons = RefReasons::new(AuthzConfigRefValid, AuthzConfigRefNotFound, AuthzConfigRefNotValid);
        self.reference.validate_as(reasons, validation);
    }

    /// The mistakes of policies in the spec or in the ConfigMap. An MCPAuthzConfig has a separate condition.
    pub(crate) fn check(&self) -> Result<(), PoliciesError> {
        if self.reference.is_set() { Ok(()) } else { self.document().map(drop) }
    }

    /// The document with the policies.
    pub(crate) fn document(&self) -> Result<Option<Json>, PoliciesError> {
        self.document.clone()
    }

    /// The policies for a virtual MCP server, which evaluates them itself, so they must be in Cedar.
    pub(crate) fn cedar(&self) -> Result<Option<Cedar>, PoliciesError> {
        let source = self.config.as_ref().and_then(|config| config.config_map.as_ref());
        let cause = match source.filter(|_| !self.reference.is_set()) {
            Some(_) => PoliciesCause::InvalidConfigMap,
            None => PoliciesCause::Invalid,
        };
        let invalid = |error: FieldError| PoliciesError::new(cause, error.within(self.parent));
        self.document()?.as_ref().map(cedar).transpose().map_err(invalid)
    }

    /// The warning about policies in the spec or in the ConfigMap. Those of an MCPAuthzConfig are in its own
    /// status.
    pub(crate) fn warning(&self) -> Option<Condition> {
        let config = self.config.as_ref().filter(|_| !self.reference.is_set())?;
        let field = FieldPath::from(self.parent).join("authzConfig");
        let place = match (&config.inline, &config.config_map) {
            (None, Some(source)) => format!("{field}.configMap: ConfigMap {}, ", source.name),
            _ => format!("{field}.inline."),
        };
        warning(&place, self.document.as_ref().ok()?.as_ref()?)
    }

    /// The warning about an upstream provider that a proxy ignores.
    pub(crate) fn ignored_provider(&self, identity: &Identity) -> Option<Condition> {
        self.primary_provider()?;
        let kind = identity.kind.kind;
        Some(Condition::new(
            ProviderIgnored::PrimaryUpstreamProviderIgnored,
            format!("authzConfig.inline.primaryUpstreamProvider has no effect on an {kind}: remove it"),
        ))
    }

    /// The upstream provider that the inline policies name.
    pub(crate) fn primary_provider(&self) -> Option<&str> {
        self.config.as_ref()?.inline.as_ref()?.primary_upstream_provider.as_deref()
    }

    /// Adds the file with the policies of the spec or of the ConfigMap.
    pub(crate) fn add_volumes(&self, identity: &Identity, volumes: &mut Volumes) {
        if let Some(config) = &self.config {
            add_volumes(config, &inline_config_map(&identity.name), volumes);
        }
    }

    /// The ConfigMap with the inline policies.
    pub(crate) fn inline_config_map(&self, identity: &Identity) -> Result<Option<ConfigMap>, BuildError> {
        let Some(config) = self.config.as_ref().filter(|config| config.inline.is_some()) else {
            return Ok(None);
        };
        let mut metadata = identity.metadata(inline_config_map(&identity.name));
        let mut labels = identity.labels();
        labels.insert(labels::AUTHZ.into(), labels::INLINE.into());
        metadata.labels = Some(labels);
        let data = [(paths::AUTHZ_FILE.to_owned(), inline_file(config)?)].into();
        Ok(Some(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }))
    }
}

/// The document with the policies, whose errors have fields of the workload. `data` is that of the ConfigMap,
/// if it exists.
fn whole_document(
    reference: &ConfigRef<AuthzConfigRef>,
    config: Option<&AuthzConfig>,
    data: Option<&Texts>,
) -> Result<Option<Json>, PoliciesError> {
    const FIELD: &str = "authzConfig.configMap";
    if let Some(authz) = reference.config() {
        let invalid =
            |error: FieldError| PoliciesError::new(PoliciesCause::Invalid, error.within("authzConfigRef"));
        return document(&authz.spec).map(Some).map_err(invalid);
    }
    let Some(config) = config else { return Ok(None) };
    if config.inline.is_some() {
        let invalid = |errors| PoliciesError { cause: PoliciesCause::Invalid, errors };
        return inline_document(config).map(Some).map_err(invalid);
    }
    let Some(source) = &config.config_map else { return Ok(None) };
    let Some(data) = data else {
        let message = format!("ConfigMap {} does not exist: create it", source.name);
        return Err(PoliciesError::new(PoliciesCause::MissingConfigMap, FieldError::new(FIELD, message)));
    };
    let invalid = |error| PoliciesError::new(PoliciesCause::InvalidConfigMap, error);
    let Some(text) = data.get(source.key()) else {
        let message = format!("ConfigMap {} has no key {}: add it", source.name, source.key());
        return Err(invalid(FieldError::new(FIELD, message)));
    };
    config_map_document(config, text).map(Some).map_err(invalid)
}

/// The name of the ConfigMap with the inline policies of a workload.
pub(crate) fn inline_config_map(workload: &str) -> String {
    format!("{workload}-authz-inline")
}

fn cedar(document: &Json) -> Result<Cedar, FieldError> {
    let invalid = |error: String| FieldError::new("authzConfig", error);
    let document: Value = document.read().map_err(|error| invalid(error.to_string()))?;
    match Document::read(&document).map_err(|error| invalid(error.to_string()))? {
        Document::Cedar(cedar) => Ok(cedar),
        Document::Pdp(_) => Err(invalid(format!(
            "type {:?} is not supported by a VirtualMCPServer: write policies in Cedar, as {}",
            AuthzDocument::PDP,
            AuthzDocument::CEDAR
        ))),
    }
}
