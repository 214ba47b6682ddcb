//! Who may log in, and which clients may register.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// Which users may log in. All conditions must hold.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AllowedUsers {
    /// The domains of verified e-mail addresses.
    pub email_domains: Vec<String>,
    /// What claims must have.
    pub claims: Vec<AllowedClaim>,
}

/// A claim, and what it must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AllowedClaim {
    /// The name of the claim.
    pub name: String,
    /// The values, of which it must be one, or have one if it is a list.
    pub values: Vec<String>,
}

/// Which clients may register themselves.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct ClientRegistration {
    /// Whether none may.
    pub disabled: bool,
    /// The variable with the token that a client must present.
    pub initial_access_token_env_var: String,
    /// The hosts of redirect URIs. The default is all.
    pub redirect_hosts: Vec<String>,
}
