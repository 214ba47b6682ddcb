//! How the authorization server gets a user's identity from an upstream provider.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// A userinfo endpoint.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UserInfo {
    /// Its address.
    #[serde_with(skip_apply)]
    pub endpoint_url: String,
    /// The method of the request, `GET` or `POST`. The default is `GET`.
    pub http_method: String,
    /// Headers for it.
    pub additional_headers: BTreeMap<String, String>,
    /// The fields of its response.
    pub field_mapping: Option<UserInfoFields>,
}

/// The fields of a response with the user's identity. The first that exists is used.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct UserInfoFields {
    /// The user's subject.
    pub subject_fields: Vec<String>,
    /// The user's name.
    pub name_fields: Vec<String>,
    /// The user's email address.
    pub email_fields: Vec<String>,
}

/// The paths of tokens in a response that deviates from OAuth.
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

/// The paths of the user's identity in a token response.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct IdentityFromToken {
    /// The path of the user's subject.
    #[serde_with(skip_apply)]
    pub subject_path: String,
    /// The path of the user's name.
    pub name_path: String,
    /// The path of the user's email address.
    pub email_path: String,
}
