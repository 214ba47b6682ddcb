//! How the authorization server learns from an upstream provider who a user is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// An endpoint that says who a user is.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UserInfo {
    /// Its address.
    #[serde_with(skip_apply)]
    pub endpoint_url: String,
    /// How it is asked, `GET` or `POST`. The default is `GET`.
    pub http_method: String,
    /// Headers for it.
    pub additional_headers: BTreeMap<String, String>,
    /// Where its answer says what.
    pub field_mapping: Option<UserInfoFields>,
}

/// Where an answer says who a user is. The first field that is there counts.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UserInfoFields {
    /// Who the user is, for machines.
    pub subject_fields: Vec<String>,
    /// What the user is called.
    pub name_fields: Vec<String>,
    /// The user's address.
    pub email_fields: Vec<String>,
}

/// Where the tokens are in an answer that is not as OAuth prescribes.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenResponseMapping {
    /// The path of the access token.
    #[serde_with(skip_apply)]
    pub access_token_path: String,
    /// The path of the scopes.
    pub scope_path: String,
    /// The path of the refresh token.
    pub refresh_token_path: String,
    /// The path of the lifespan.
    pub expires_in_path: String,
}

/// Where an answer with tokens says who the user is.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct IdentityFromToken {
    /// The path of who the user is, for machines.
    #[serde_with(skip_apply)]
    pub subject_path: String,
    /// The path of what the user is called.
    pub name_path: String,
    /// The path of the user's address.
    pub email_path: String,
}
