//! A workload's optional reference to a configuration, resolved. Each kind of configuration adds its effects
//! on the workload in its own file.

use kube::core::object::HasSpec;
use skep_api::{
    conditions::Reason,
    kinds::{
        MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPTelemetryConfig, MCPToolConfig,
        MCPWebhookConfig,
    },
    refs::{
        AuthServerRef, AuthzConfigRef, ExternalAuthConfigRef, OidcConfigRef, TelemetryConfigRef,
        ToolConfigRef, WebhookConfigRef,
    },
};
use skep_config::{FieldError, FieldPath};
use skep_world::Reader;

use crate::{
    config_controller::{Config, checked},
    reconcile::{Condition, Problem, Validation},
    resources::{RefError, ResolvedRef, config_hash, kind_of},
};

/// The type of a field that refers to a configuration.
pub(crate) trait ConfigField: Clone {
    /// The kind of the configuration.
    type Kind: Config;

    /// The name of the configuration.
    fn name(&self) -> &str;
}

macro_rules! config_fields {
    ($($field:ident => $kind:ident),+ $(,)?) => { $(
        impl ConfigField for $field {
            type Kind = $kind;

            fn name(&self) -> &str {
                &self.name
            }
        }
    )+ };
}

config_fields! {
    AuthServerRef => MCPExternalAuthConfig,
    AuthzConfigRef => MCPAuthzConfig,
    ExternalAuthConfigRef => MCPExternalAuthConfig,
    OidcConfigRef => MCPOIDCConfig,
    TelemetryConfigRef => MCPTelemetryConfig,
    ToolConfigRef => MCPToolConfig,
    WebhookConfigRef => MCPWebhookConfig,
}

/// A reference to a configuration, if the workload has one.
pub(crate) struct ConfigRef<F: ConfigField> {
    /// The path of the field.
    pub(super) path: FieldPath,
    pub(super) target: Option<(F, ResolvedRef<F::Kind>)>,
}

impl<F: ConfigField> ConfigRef<F> {
    /// Looks the configuration up, which also subscribes the reader to it.
    pub(crate) fn resolve(path: impl Into<FieldPath>, field: Option<&F>, reader: &mut Reader) -> Self {
        let target = field.map(|field| (field.clone(), ResolvedRef::resolve(reader, field.name())));
        Self { path: path.into(), target }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.target.is_some()
    }

    /// Whether there is no reference, or it leads to a configuration.
    pub(crate) fn is_resolved(&self) -> bool {
        self.target.is_none() || self.config().is_some()
    }

    /// The configuration, if it exists and can be parsed.
    pub(crate) fn config(&self) -> Option<&F::Kind> {
        self.found().map(|(_, config)| config)
    }

    /// The field and the configuration, if that exists and can be parsed.
    pub(super) fn found(&self) -> Option<(&F, &F::Kind)> {
        let (field, resolved) = self.target.as_ref()?;
        Some((field, resolved.object()?))
    }

    /// The error of a configuration that does not exist.
    pub(crate) fn missing(&self) -> Option<FieldError> {
        let (_, resolved) = self.target.as_ref()?;
        let error = checked(resolved).err().filter(|error| matches!(error, RefError::Missing(_)))?;
        Some(FieldError::new(self.path.clone(), error.message()))
    }

    /// The hash of the configuration, if that is in use.
    pub(crate) fn hash(&self) -> Option<String> {
        self.config().map(|config| config_hash(config.spec()))
    }

    /// Adds the condition about the reference, or its problem: the configuration must exist and pass its own
    /// check.
    pub(crate) fn validate_as(&self, reasons: RefReasons, validation: &mut Validation) {
        if let Some((name, _)) = self.checked(reasons, validation) {
            let message = format!("{} {name} is valid", kind_of::<F::Kind>().kind);
            validation.add(reasons.valid.map(|reason| Condition::new(reason, message)));
        }
    }

    /// The configuration with its name, if it exists and passes its own check. If not, the problem is added.
    pub(super) fn checked(
        &self,
        reasons: RefReasons,
        validation: &mut Validation,
    ) -> Option<(&str, &F::Kind)> {
        let (_, resolved) = self.target.as_ref()?;
        let config = checked(resolved).map_err(|error| reasons.problem(self.path.clone(), &error));
        Some((&resolved.name, validation.ok(config)?))
    }
}

/// The reasons of the condition about a reference. Without one, the phase and the message report the problem.
#[derive(Clone, Copy, Default)]
pub(crate) struct RefReasons {
    pub(crate) valid: Option<Reason>,
    pub(crate) missing: Option<Reason>,
    pub(crate) invalid: Option<Reason>,
}

impl RefReasons {
    pub(crate) fn new(
        valid: impl Into<Reason>,
        missing: impl Into<Reason>,
        invalid: impl Into<Reason>,
    ) -> Self {
        Self { valid: Some(valid.into()), missing: Some(missing.into()), invalid: Some(invalid.into()) }
    }

    fn problem(&self, path: FieldPath, error: &RefError) -> Problem {
        let problem = Problem::of(path, error.message());
        let (reason, problem) = match error {
            RefError::Missing(_) => (self.missing, problem.transient()),
            RefError::Invalid(_) => (self.invalid, problem),
        };
        Problem { reason, ..problem }
    }
}
