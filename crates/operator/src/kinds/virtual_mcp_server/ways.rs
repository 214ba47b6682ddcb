//! How a virtual MCP server authenticates to its backends: one way for each, from wherever it is described.

use std::collections::{BTreeMap, BTreeSet};

use skep_api::{
    kinds::{BackendAuth, BackendAuthType, MCPExternalAuthConfig, OutgoingAuthSource},
    refs::SecretKeyRef,
};
use skep_config::vmcp::{OutgoingAuth, Strategy};

use super::inputs::Inputs;
use crate::{
    conditions::Finding,
    parts::{
        self,
        strategy::{Unusable, strategy},
    },
    reference::Problem,
};

/// The ways to the backends.
#[derive(Default)]
pub(super) struct Ways {
    /// For backends that have none of their own.
    default: Option<Way>,
    /// Those that the object gives to single backends.
    own: BTreeMap<String, Way>,
    /// Those that members describe themselves, unless the object does.
    discovered: BTreeMap<String, Way>,
}

/// One way, with the MCPExternalAuthConfig that describes it.
struct Way {
    auth: Option<String>,
    strategy: Result<Strategy, Trouble>,
}

/// Why a way cannot be gone, in a word and in a sentence.
struct Trouble {
    reason: &'static str,
    message: String,
    /// Whether something is missing, which may come.
    missing: bool,
}

/// The ways, wherever they come from.
pub(super) fn ways(inputs: &Inputs) -> Ways {
    let Some(auth) = &inputs.spec().outgoing_auth else {
        return Ways { discovered: discovered(inputs, &BTreeSet::new()), ..Ways::default() };
    };
    let own: BTreeMap<String, Way> = auth
        .backends
        .iter()
        .filter_map(|(name, way)| Some((name.clone(), given(inputs, name, way)?)))
        .collect();
    let described =
        auth.backends.iter().filter(|(_, way)| way.type_ == BackendAuthType::ExternalAuthConfigRef);
    let described: BTreeSet<&str> = described.map(|(name, _)| name.as_str()).collect();
    Ways {
        default: auth.default.as_ref().and_then(|way| given(inputs, "", way)),
        discovered: discovered(inputs, &described),
        own,
    }
}

/// A way that the object itself gives, to the backend of that name.
fn given(inputs: &Inputs, backend: &str, way: &BackendAuth) -> Option<Way> {
    let reference = way.external_auth_config_ref.as_ref().filter(|reference| !reference.name.is_empty());
    if let (BackendAuthType::ExternalAuthConfigRef, Some(reference)) = (way.type_, reference) {
        return Some(described(inputs, &reference.name));
    }
    // The member's own way, if it has one: a server that is told its backends finds it among those discovered, and
    // another one looks at the member before it looks here.
    let mut members = inputs.members.iter().filter(|member| member.name() == backend);
    let has_own = members.any(|member| member.external_auth().is_some());
    let told = inputs.source() == OutgoingAuthSource::Inline && has_own;
    (!told).then(|| Way { auth: None, strategy: Ok(Strategy::of(Strategy::UNAUTHENTICATED)) })
}

fn discovered(inputs: &Inputs, described_by_object: &BTreeSet<&str>) -> BTreeMap<String, Way> {
    let members = inputs.members.iter().filter(|member| !described_by_object.contains(member.name()));
    members
        .filter_map(|member| Some((member.name().to_owned(), described(inputs, member.external_auth()?))))
        .collect()
}

/// The way that an MCPExternalAuthConfig describes.
fn described(inputs: &Inputs, auth: &str) -> Way {
    Way { auth: Some(auth.into()), strategy: converted(inputs, auth) }
}

fn converted(inputs: &Inputs, name: &str) -> Result<Strategy, Trouble> {
    let failed = |message, missing| Trouble { reason: "ConversionFailed", message, missing };
    let Some(reference) = inputs.external_auths.get(name) else {
        return Err(failed("externalAuthConfigRef.name: name an MCPExternalAuthConfig".into(), false));
    };
    let checked = reference.checked("MCPExternalAuthConfig", |auth| parts::external_auth::check(&auth.spec));
    let auth = checked.map_err(|problem| match problem {
        Problem::Missing(message) => failed(message, true),
        Problem::Invalid(message) => Trouble { reason: "InvalidExternalAuthConfig", message, missing: false },
    })?;
    let at = |message: &str| format!("MCPExternalAuthConfig {name}: {message}");
    let made = strategy(name, &auth.spec, inputs.auth_server()).map_err(|unusable| Trouble {
        reason: match unusable {
            Unusable::Ambiguous(_) => "AmbiguousSubjectProvider",
            Unusable::Unsupported(_) => "ConversionFailed",
        },
        message: at(unusable.message()),
        missing: false,
    })?;
    let missing = secrets(name, auth).find_map(|(_, secret)| inputs.missing(secret));
    missing.map_or(Ok(made), |message| Err(failed(at(&message), true)))
}

fn secrets<'a>(
    name: &str,
    auth: &'a MCPExternalAuthConfig,
) -> impl Iterator<Item = (String, &'a SecretKeyRef)> {
    parts::strategy::variables(name, &auth.spec)
}

impl Ways {
    /// One condition for each way that somebody describes.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let default = self.default.iter().map(|way| ("DefaultAuthConfig".to_owned(), way));
        let own = self.own.iter().map(|(name, way)| (format!("BackendAuthConfig-{name}"), way));
        let discovered =
            self.discovered.iter().map(|(name, way)| (format!("DiscoveredAuthConfig-{name}"), way));
        let told = default.chain(own).chain(discovered).filter(|(_, way)| way.auth.is_some());
        told.map(|(type_, way)| match &way.strategy {
            Ok(strategy) => {
                Finding::yes(type_, "ConversionSucceeded", format!("requests go out as {}", strategy.type_))
            }
            Err(trouble) => Finding::no(type_, trouble.reason, trouble.message.clone()),
        })
        .collect()
    }

    /// What is wrong with the ways that the object itself gives, and whether something is missing for them. What members
    /// describe is only about them.
    pub(super) fn problem(&self) -> Option<(&str, bool)> {
        let mut own = self.default.iter().chain(self.own.values());
        let trouble = own.find_map(|way| way.strategy.as_ref().err())?;
        Some((&trouble.message, trouble.missing))
    }

    /// Whether it is known how to authenticate to a backend.
    pub(super) fn can_reach(&self, backend: &str) -> bool {
        let way = self.own.get(backend).or_else(|| self.discovered.get(backend));
        way.is_none_or(|way| way.strategy.is_ok())
    }

    /// What the file says. A server that looks at its backends' objects finds the ways that these describe itself.
    pub(super) fn outgoing_auth(&self, source: OutgoingAuthSource) -> OutgoingAuth {
        let strategy = |way: &Way| way.strategy.as_ref().ok().cloned();
        let named = |ways: &BTreeMap<String, Way>| -> Vec<(String, Strategy)> {
            ways.iter().filter_map(|(name, way)| Some((name.clone(), strategy(way)?))).collect()
        };
        let mut backends = BTreeMap::new();
        if source == OutgoingAuthSource::Inline {
            backends.extend(named(&self.discovered));
        }
        backends.extend(named(&self.own));
        OutgoingAuth {
            source: source.as_str().into(),
            default: self.default.as_ref().and_then(strategy),
            backends,
        }
    }

    /// The variables with the secrets of the ways that can be gone: of members' own, of single backends and the default,
    /// each sorted by name. One that two ways share stands once.
    pub(super) fn variables<'a>(&self, inputs: &'a Inputs) -> Vec<(String, &'a SecretKeyRef)> {
        let usable = |way: &&Way| way.strategy.is_ok();
        let of = |way: &Way| -> Vec<(String, &'a SecretKeyRef)> {
            let Some(name) = &way.auth else { return Vec::new() };
            let auth = inputs.external_auths.get(name).and_then(|reference| reference.object());
            auth.map(|auth| secrets(name, auth).collect()).unwrap_or_default()
        };
        let sorted = |ways: &BTreeMap<String, Way>| {
            let mut all: Vec<_> = ways.values().filter(usable).flat_map(of).collect();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all
        };
        // Without anything said, the pods look up members' secrets themselves.
        let members = inputs.spec().outgoing_auth.is_some();
        let discovered = if members { sorted(&self.discovered) } else { Vec::new() };
        let default = self.default.iter().filter(usable).flat_map(of);
        let mut all: Vec<(String, &SecretKeyRef)> = Vec::new();
        for (name, secret) in discovered.into_iter().chain(sorted(&self.own)).chain(default) {
            if !all.iter().any(|(other, _)| *other == name) {
                all.push((name, secret));
            }
        }
        all
    }
}
