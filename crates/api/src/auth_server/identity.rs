//! The identity of a user, as an upstream provider reports it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{enums::text_enum, list};

text_enum! {
    /// The HTTP method for a userinfo endpoint.
    pub enum UserInfoMethod {
        /// By GET.
        #[default]
        Get = "GET",
        /// By POST.
        Post = "POST",
    }
}

/// A userinfo endpoint: it returns the identity of the user for an access token.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// The URL of the endpoint. It returns a JSON object.
    #[schemars(regex(pattern = "^https?://.*$"))]
    pub endpoint_url: String,
    /// The HTTP method. The default is GET.
    pub http_method: Option<UserInfoMethod>,
    /// Headers to send in addition to the token, for example Accept. They are stored in plain text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_headers: BTreeMap<String, String>,
    /// Which fields of the response to use. Set it when the endpoint uses other names for them. In each list, the
    /// first field that has a value is used.
    pub field_mapping: Option<UserInfoFields>,
}

impl UserInfo {
    /// The HTTP method.
    pub fn http_method(&self) -> UserInfoMethod {
        self.http_method.unwrap_or_default()
    }
}

/// The fields of a userinfo response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserInfoFields {
    /// Fields that identify the user. Choose ones that never change, such as id. The default is sub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub subject_fields: Vec<String>,
    /// Fields with the user's name. The default is name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub name_fields: Vec<String>,
    /// Fields with the user's email address. The default is email.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub email_fields: Vec<String>,
}

/// Where the tokens are in a response that deviates from OAuth.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenResponseMapping {
    /// The path of the access token, with dots between its keys, for example authed_user.access_token.
    #[schemars(length(min = 1))]
    pub access_token_path: String,
    /// The path of the granted scopes. The default is scope.
    pub scope_path: Option<String>,
    /// The path of the refresh token. The default is refresh_token.
    pub refresh_token_path: Option<String>,
    /// The path of the access token's lifetime in seconds. The default is expires_in.
    pub expires_in_path: Option<String>,
}

/// Where the token endpoint's response identifies the user.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityFromToken {
    /// The path of the user's identifier, with dots between its keys, for example authed_user.id. The modifier
    /// @upstreamjwt decodes a JWT: access_token|@upstreamjwt|sub. Choose a value that never changes.
    #[schemars(length(min = 1, max = 256))]
    pub subject_path: String,
    /// The path of the user's name.
    #[schemars(length(min = 1, max = 256))]
    pub name_path: Option<String>,
    /// The path of the user's email address.
    #[schemars(length(min = 1, max = 256))]
    pub email_path: Option<String>,
}
