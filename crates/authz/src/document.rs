//! The authorization document: the type of authorizer, and its settings.

use serde::Deserialize;
use serde_json::Value;
use skep_config::run_config::{AuthzDocument, Cedar};
use skep_gocompat::fold;

use crate::{
    Error, Pdp, Warning,
    entities::{Entities, group_type},
    policies::Policies,
    warnings,
};

/// An authorizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Policies in Cedar, which the proxy evaluates itself.
    Cedar,
    /// A policy decision point, which the proxy queries over HTTP.
    Pdp,
}

impl Backend {
    /// The authorizer of a `type`.
    pub fn of(type_: &str) -> Result<Self, Error> {
        match type_ {
            AuthzDocument::CEDAR => Ok(Self::Cedar),
            AuthzDocument::PDP => Ok(Self::Pdp),
            _ => Err(Error::new(
                "type",
                format!(
                    "{type_:?} is not known: use {} for Cedar policies, or {} for a policy decision point",
                    AuthzDocument::CEDAR,
                    AuthzDocument::PDP
                ),
            )),
        }
    }

    /// The key of its settings in a document.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Cedar => "cedar",
            Self::Pdp => "pdp",
        }
    }
}

/// A parsed document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// Policies in Cedar.
    Cedar(Cedar),
    /// A policy decision point.
    Pdp(Pdp),
}

/// The parts of a document, of any type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts {
    version: Value,
    #[serde(rename = "type")]
    type_: Value,
    cedar: Option<Value>,
    pdp: Option<Value>,
}

impl Document {
    /// The document in a JSON value: `{version, type, cedar | pdp}`.
    ///
    /// Only the shape is validated; [`Document::check`] validates the rest. Unknown keys are ignored. An unknown
    /// version is rejected.
    pub fn read(document: &Value) -> Result<Self, Error> {
        let parts: Parts = match document {
            Value::Object(_) => {
                fold::from_value(document).map_err(|error| Error::new("document", error.to_string()))?
            }
            _ => Parts::default(),
        };
        match &parts.version {
            Value::Null => {}
            Value::String(version) if version.is_empty() || version == AuthzDocument::VERSION => {}
            other => {
                let expected = AuthzDocument::VERSION;
                return Err(Error::new("version", format!("{other} is not known: use {expected:?}")));
            }
        }
        let backend = Backend::of(parts.type_.as_str().unwrap_or_default())?;
        let key = backend.key();
        let missing = || Error::new(key, "set what the type needs");
        let wrong = |error: serde_json::Error| Error::new(key, error.to_string());
        match backend {
            Backend::Cedar => {
                fold::from_value(&parts.cedar.ok_or_else(missing)?).map(Self::Cedar).map_err(wrong)
            }
            Backend::Pdp => fold::from_value(&parts.pdp.ok_or_else(missing)?).map(Self::Pdp).map_err(wrong),
        }
    }

    /// Validates that it can be enforced, and returns warnings.
    pub fn check(&self) -> Result<Vec<Warning>, Error> {
        match self {
            Self::Cedar(cedar) => check(cedar).map_err(|error| error.within(Backend::Cedar.key())),
            Self::Pdp(pdp) => {
                pdp.check().map(|()| Vec::new()).map_err(|error| error.within(Backend::Pdp.key()))
            }
        }
    }
}

/// A policy that is always valid.
const VALID_POLICY: &str = "permit(principal, action, resource);";

/// Every mistake in policies, their entities and the type of groups. [`check`] stops at the first.
pub fn mistakes(cedar: &Cedar) -> Vec<Error> {
    let Err(first) = check(cedar) else { return Vec::new() };
    let policies = cedar.policies.iter().enumerate().filter_map(|(index, policy)| {
        let alone = Cedar { policies: vec![policy.clone()], ..Cedar::default() };
        Some(Error::new(format!("policies[{index}]"), check(&alone).err()?.message()))
    });
    let policies = match cedar.policies.as_slice() {
        [] => vec![first.clone()],
        _ => policies.collect(),
    };
    let valid = Cedar { policies: vec![VALID_POLICY.into()], ..Cedar::default() };
    let others = [
        Cedar { entities_json: cedar.entities_json.clone(), ..valid.clone() },
        Cedar { group_entity_type: cedar.group_entity_type.clone(), ..valid },
    ];
    let others = others.iter().filter_map(|part| check(part).err());
    let mut errors: Vec<_> = policies.into_iter().chain(others).collect();
    if errors.is_empty() {
        errors.push(first);
    }
    errors
}

/// Validates that policies and entities can be enforced, and returns warnings.
pub fn check(cedar: &Cedar) -> Result<Vec<Warning>, Error> {
    let policies = Policies::parse(&cedar.policies)?;
    let entities = Entities::parse(&cedar.entities_json)?;
    let group = group_type(&cedar.group_entity_type)?;
    Ok(warnings::warnings(&policies, &entities, &group))
}
