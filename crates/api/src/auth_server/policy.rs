//! Who may log in, and which clients may register. ToolHive has none of this.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{list, refs::SecretKeyRef};

/// Which users may log in. All conditions must hold; without any, all users of the first identity provider may.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedUsers {
    /// The domains of e-mail addresses, such as example.com; a subdomain is another domain. The ID token must have
    /// email_verified: true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")),
        transform = list::atomic
    )]
    pub email_domains: Vec<String>,
    /// What claims of the ID token must have, or of the response of the userinfo endpoint of a provider without ID tokens. For
    /// groups, name the claim that lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), transform = list::atomic)]
    pub claims: Vec<AllowedClaim>,
}

/// A claim, and what it must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedClaim {
    /// The name of the claim, such as groups.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The values, of which the claim must be one, or have one if it is a list.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 1024)), transform = list::atomic)]
    pub values: Vec<String>,
}

/// Which clients may register themselves (RFC 7591).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientRegistration {
    /// Whether none may. Clients that have registered before stay known.
    #[schemars(extend("default" = false))]
    pub disabled: Option<bool>,
    /// The Secret key with the token that a client must present to register.
    pub initial_access_token_ref: Option<SecretKeyRef>,
    /// The hosts of redirect URIs, such as app.example.com, or *.example.com for all hosts below. localhost means all names and addresses of
    /// the user's own machine. A URI with a scheme of its own is named by that, such as cursor:. It applies to each login, also of clients
    /// that have a document, or registered before. The default is all hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(
            length(min = 1, max = 253),
            regex(pattern = r"^((\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[A-Za-z][A-Za-z0-9+.-]*:)$")
        ),
        transform = list::atomic
    )]
    pub redirect_hosts: Vec<String>,
}
