//! How a virtual MCP server authenticates to its backends: one strategy for each, from the object or from the member.

use std::collections::{BTreeMap, BTreeSet};

use skep_api::{
    conditions::{BackendAuthConfig, DefaultAuthConfig, DiscoveredAuthConfig, Reason},
    kinds::{BackendAuth, BackendAuthType, MCPExternalAuthConfig, OutgoingAuthSource},
    refs::SecretKeyRef,
    strategy::{StrategyError, provider, strategy, variables},
    vmcp::{BackendAuthStrategy, OutgoingAuth},
};
use skep_config::FieldPath;

use super::inputs::Inputs;
use crate::{
    config_controller::checked,
    reconcile::{Condition, Problem},
    resources::RefError,
};

/// The strategies for all backends.
#[derive(Default)]
pub(super) struct BackendAuths {
    /// For backends that have none of their own.
    default: Option<AuthStrategy>,
    /// Those that the object gives to single backends.
    own: BTreeMap<String, AuthStrategy>,
    /// Those that members describe themselves, unless the object does.
    discovered: BTreeMap<String, AuthStrategy>,
}

/// One strategy, with the MCPExternalAuthConfig that describes it.
struct AuthStrategy {
    config: Option<String>,
    strategy: Result<BackendAuthStrategy, AuthError>,
}

/// Why a strategy cannot be used.
struct AuthError {
    cause: AuthErrorCause,
    message: String,
    /// Whether something does not exist yet.
    is_missing: bool,
}

#[derive(Clone, Copy)]
enum AuthErrorCause {
    Conversion,
    InvalidConfig,
    AmbiguousProvider,
}

/// The reason of a condition of this type for the strategy.
macro_rules! reason {
    ($type_:ident, $strategy:expr) => {
        Reason::from(match &$strategy.strategy {
            Ok(_) => $type_::ConversionSucceeded,
            Err(AuthError { cause: AuthErrorCause::Conversion, .. }) => $type_::ConversionFailed,
            Err(AuthError { cause: AuthErrorCause::InvalidConfig, .. }) => $type_::InvalidExternalAuthConfig,
            Err(AuthError { cause: AuthErrorCause::AmbiguousProvider, .. }) => {
                $type_::AmbiguousSubjectProvider
            }
        })
    };
}

impl BackendAuths {
    /// The strategies of the object and of the group's members.
    pub(super) fn new(inputs: &Inputs) -> Self {
        let Some(auth) = &inputs.spec().outgoing_auth else {
            return Self { discovered: discovered(inputs, &BTreeSet::new()), ..Self::default() };
        };
        let own: BTreeMap<String, AuthStrategy> = auth
            .backends
            .iter()
            .filter_map(|(name, auth)| Some((name.clone(), given(inputs, name, auth)?)))
            .collect();
        let described =
            auth.backends.iter().filter(|(_, auth)| auth.type_ == BackendAuthType::ExternalAuthConfigRef);
        let described: BTreeSet<&str> = described.map(|(name, _)| name.as_str()).collect();
        Self {
            default: auth.default.as_ref().and_then(|auth| given(inputs, "", auth)),
            discovered: discovered(inputs, &described),
            own,
        }
    }

    /// One condition for each strategy that an MCPExternalAuthConfig describes.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let message = |strategy: &AuthStrategy| match &strategy.strategy {
            Ok(strategy) => format!("requests are authenticated by {}", strategy.type_),
            Err(error) => error.message.clone(),
        };
        let described = |strategy: &&AuthStrategy| strategy.config.is_some();
        let default = self.default.iter().filter(described);
        let default =
            default.map(|strategy| Condition::new(reason!(DefaultAuthConfig, strategy), message(strategy)));
        let own = self.own.iter().filter(|(_, strategy)| described(strategy)).map(|(name, strategy)| {
            Condition::new(reason!(BackendAuthConfig, strategy), message(strategy)).named(name)
        });
        let discovered = self.discovered.iter().filter(|(_, strategy)| described(strategy));
        let discovered = discovered.map(|(name, strategy)| {
            Condition::new(reason!(DiscoveredAuthConfig, strategy), message(strategy)).named(name)
        });
        default.chain(own).chain(discovered).collect()
    }

    /// The errors of the strategies in the object itself. A member's own strategy concerns that member alone.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let default = self.default.iter().map(|strategy| {
            (FieldPath::from("outgoingAuth.default"), reason!(DefaultAuthConfig, strategy), strategy)
        });
        let own = self.own.iter().map(|(name, strategy)| {
            let field = FieldPath::from("outgoingAuth.backends").key(name);
            (field, reason!(BackendAuthConfig, strategy), strategy)
        });
        default.chain(own).filter_map(|(field, reason, strategy)| {
            let error = strategy.strategy.as_ref().err()?;
            let problem = Problem::of(field, error.message.clone()).reported_as(reason);
            Some(if error.is_missing { problem.transient() } else { problem })
        })
    }

    /// Whether the server can authenticate to a backend.
    pub(super) fn is_usable(&self, backend: &str) -> bool {
        let strategy = self.own.get(backend).or_else(|| self.discovered.get(backend));
        strategy.is_none_or(|strategy| strategy.strategy.is_ok())
    }

    /// The part of the configuration file. A server that discovers its backends also discovers their strategies.
    pub(super) fn outgoing_auth(&self, source: OutgoingAuthSource) -> OutgoingAuth {
        let usable = |strategy: &AuthStrategy| strategy.strategy.as_ref().ok().cloned();
        let named = |strategies: &BTreeMap<String, AuthStrategy>| -> Vec<(String, BackendAuthStrategy)> {
            strategies.iter().filter_map(|(name, strategy)| Some((name.clone(), usable(strategy)?))).collect()
        };
        let mut backends = BTreeMap::new();
        if source == OutgoingAuthSource::Inline {
            backends.extend(named(&self.discovered));
        }
        backends.extend(named(&self.own));
        OutgoingAuth {
            source: source.as_str().into(),
            default: self.default.as_ref().and_then(usable),
            backends,
        }
    }

    /// The variables with the secrets of the usable strategies: of members, of single backends and the default, each sorted
    /// by name. One that two strategies share is listed once.
    pub(super) fn variables<'a>(&self, inputs: &'a Inputs) -> Vec<(String, &'a SecretKeyRef)> {
        let is_usable = |strategy: &&AuthStrategy| strategy.strategy.is_ok();
        let of = |strategy: &AuthStrategy| -> Vec<(String, &'a SecretKeyRef)> {
            let Some(name) = &strategy.config else { return Vec::new() };
            let auth = inputs.external_auths.get(name).and_then(|reference| reference.object());
            auth.map(|auth| secrets(name, auth).collect()).unwrap_or_default()
        };
        let sorted = |strategies: &BTreeMap<String, AuthStrategy>| {
            let mut all: Vec<_> = strategies.values().filter(is_usable).flat_map(of).collect();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all
        };
        // Without outgoingAuth, the pods read the secrets of members themselves.
        let has_members = inputs.spec().outgoing_auth.is_some();
        let discovered = if has_members { sorted(&self.discovered) } else { Vec::new() };
        let default = self.default.iter().filter(is_usable).flat_map(of);
        let mut all: Vec<(String, &SecretKeyRef)> = Vec::new();
        for (name, secret) in discovered.into_iter().chain(sorted(&self.own)).chain(default) {
            if !all.iter().any(|(other, _)| *other == name) {
                all.push((name, secret));
            }
        }
        all
    }
}

/// The strategy that the object itself gives to the backend of that name.
fn given(inputs: &Inputs, backend: &str, auth: &BackendAuth) -> Option<AuthStrategy> {
    let reference = auth.external_auth_config_ref.as_ref().filter(|reference| !reference.name.is_empty());
    if let (BackendAuthType::ExternalAuthConfigRef, Some(reference)) = (auth.type_, reference) {
        return Some(described(inputs, &reference.name));
    }
    // The member's own strategy is among those discovered, which the file of a server with inline backends has. A
    // server that discovers its backends reads the member's object first.
    let mut members = inputs.members.iter().filter(|member| member.name() == backend);
    let has_own = members.any(|member| member.external_auth().is_some());
    let is_discovered = inputs.source() == OutgoingAuthSource::Inline && has_own;
    (!is_discovered).then(|| AuthStrategy {
        config: None,
        strategy: Ok(BackendAuthStrategy::of(BackendAuthStrategy::UNAUTHENTICATED)),
    })
}

fn discovered(inputs: &Inputs, described_by_object: &BTreeSet<&str>) -> BTreeMap<String, AuthStrategy> {
    let members = inputs.members.iter().filter(|member| !described_by_object.contains(member.name()));
    members
        .filter_map(|member| Some((member.name().to_owned(), described(inputs, member.external_auth()?))))
        .collect()
}

/// The strategy that an MCPExternalAuthConfig describes.
fn described(inputs: &Inputs, config: &str) -> AuthStrategy {
    AuthStrategy { config: Some(config.into()), strategy: converted(inputs, config) }
}

fn converted(inputs: &Inputs, name: &str) -> Result<BackendAuthStrategy, AuthError> {
    let failed = |message, is_missing| AuthError { cause: AuthErrorCause::Conversion, message, is_missing };
    let Some(reference) = inputs.external_auths.get(name) else {
        return Err(failed("externalAuthConfigRef.name: must name an MCPExternalAuthConfig".into(), false));
    };
    let auth = checked(reference).map_err(|error| match error {
        RefError::Missing(message) => failed(message, true),
        RefError::Invalid(message) => {
            AuthError { cause: AuthErrorCause::InvalidConfig, message, is_missing: false }
        }
    })?;
    let at = |message: &str| format!("MCPExternalAuthConfig {name}: {message}");
    let server = inputs.auth_server().map(|server| server.upstream_providers.iter());
    let providers: Option<Vec<String>> =
        server.map(|providers| providers.map(|one| provider(&one.name)).collect());
    let strategy = strategy(name, &auth.spec, providers.as_deref()).map_err(|error| AuthError {
        cause: match error {
            StrategyError::Ambiguous(_) => AuthErrorCause::AmbiguousProvider,
            StrategyError::Unsupported(_) => AuthErrorCause::Conversion,
        },
        message: at(&error.error().to_string()),
        is_missing: false,
    })?;
    let missing = secrets(name, auth).find_map(|(_, secret)| inputs.missing(secret));
    missing.map_or(Ok(strategy), |message| Err(failed(at(&message), true)))
}

fn secrets<'a>(
    name: &str,
    auth: &'a MCPExternalAuthConfig,
) -> impl Iterator<Item = (String, &'a SecretKeyRef)> {
    variables(name, &auth.spec)
}
