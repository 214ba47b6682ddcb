//! The rows of the store. Their names are ToolHive's, where it has the same.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Map, Value};

use crate::{limits, random::base64};

/// The length of a hash, in bytes.
const HASH: usize = 32;

/// How a client authenticates (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Method {
    /// It is public.
    None,
    ClientSecretBasic,
    ClientSecretPost,
    /// It signs an assertion (RFC 7523, section 2.2).
    PrivateKeyJwt,
}

/// A client.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    #[serde(default)]
    pub(crate) grant_types: Vec<String>,
    #[serde(default)]
    pub(crate) response_types: Vec<String>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default)]
    pub(crate) audience: Vec<String>,
    #[serde(default)]
    pub(crate) public: bool,
    #[serde(default)]
    pub(crate) dcr_issued: bool,
    pub(crate) token_endpoint_auth_method: Method,
    /// The hash of its secret, by ToolHive's name in its rows.
    #[serde(default, alias = "secret", deserialize_with = "hash", skip_serializing_if = "String::is_empty")]
    pub(crate) secret_hash: String,
    /// Whether it may send its secret in either way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) any_secret_method: bool,
    /// The keys of its assertions. Only clients with a document have some, and these are not stored.
    #[serde(skip)]
    pub(crate) keys: Option<Map<String, Value>>,
}

/// The user of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct User {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
}

/// What the ids of users begin with whom no upstream has named. Those of others are UUIDs.
const UNNAMED: &str = "tk-";

impl User {
    /// The id of a user whom the upstream does not name: 128 bits of a hash, as ToolHive has them.
    pub(crate) fn unnamed_id(hash: &str) -> String {
        format!("{UNNAMED}{hash:.32}")
    }

    /// What a page calls the user.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().or(self.email.as_deref()).unwrap_or(&self.id)
    }

    /// Whether no upstream has named the user: another login is another user.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.id.starts_with(UNNAMED)
    }
}

/// A login that waits for an upstream, or for the user's decision.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Pending {
    pub(crate) client_id: String,
    pub(crate) redirect_uri: String,
    pub(crate) state: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) pkce_challenge: String,
    pub(crate) pkce_method: String,
    pub(crate) session_id: String,
    pub(crate) internal_state: String,
    pub(crate) upstream_provider_name: String,
    pub(crate) upstream_pkce_verifier: String,
    pub(crate) upstream_nonce: String,
    pub(crate) created_at: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    /// Whether the request had no redirect URI, so that the token request need not have one either.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_redirect_implied: bool,
    /// Whether the user saw no page, because this browser has an approval of the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_approval_remembered: bool,
    /// The user, after the first upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<User>,
}

/// What a client was granted: behind a code, and behind each refresh token of a session.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Grant {
    pub(crate) client_id: String,
    pub(crate) request_id: String,
    pub(crate) requested_at: u64,
    pub(crate) granted_scopes: Vec<String>,
    pub(crate) granted_audience: Vec<String>,
    pub(crate) session: Session,
    /// When the code or token expires, in seconds since 1970.
    pub(crate) expires_at: u64,
    /// What the token request must prove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<Proof>,
}

/// The session behind a grant. Its id is also that of the family of its refresh tokens.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) user: User,
}

/// What the request for the tokens of a code must have.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Proof {
    pub(crate) challenge: String,
    pub(crate) redirect_uri: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_redirect_implied: bool,
}

/// The tokens of a session at one upstream.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Upstream {
    pub(crate) provider_id: String,
    pub(crate) access_token: String,
    #[serde(default)]
    pub(crate) refresh_token: String,
    #[serde(default)]
    pub(crate) id_token: String,
    /// When the access token expires, in seconds since 1970. Zero: it does not.
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) expires_at: u64,
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) session_expires_at: u64,
    pub(crate) user_id: String,
    /// When the user connected it, in seconds since 1970. Zero: that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) connected_at: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<String>,
    #[serde(default)]
    pub(crate) upstream_subject: String,
    #[serde(default)]
    pub(crate) client_id: String,
    /// Whether the upstream has refused the refresh token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_refused: bool,
}

/// A session of a user.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserSession {
    pub(crate) id: String,
    /// What continues it: it has a refresh token.
    pub(crate) grant: Option<Grant>,
    /// Its rows at upstreams, in their order.
    pub(crate) rows: Vec<Option<Upstream>>,
}

impl UserSession {
    /// Whether it goes on: it can be continued, or has tokens of the first provider.
    pub(crate) fn is_known(&self) -> bool {
        self.grant.is_some() || self.rows.first().is_some_and(Option::is_some)
    }

    /// The id of its user.
    pub(crate) fn user_id(&self) -> &str {
        let of_grant = self.grant.as_ref().map(|grant| &*grant.session.user.id);
        of_grant.or_else(|| self.rows.iter().flatten().map(|row| &*row.user_id).next()).unwrap_or_default()
    }

    /// When the user connected an upstream for the last time, in seconds since 1970.
    pub(crate) fn connected_at(&self) -> u64 {
        self.rows.iter().flatten().map(|row| row.connected_at).max().unwrap_or_default()
    }

    /// The client that acts for the user.
    pub(crate) fn client_id(&self) -> &str {
        self.grant.as_ref().map_or_else(|| client_of(&self.rows), |grant| &grant.client_id)
    }
}

/// The client of a session with these rows.
pub(crate) fn client_of(rows: &[Option<Upstream>]) -> &str {
    let mut ids = rows.iter().flatten().map(|row| &*row.client_id);
    ids.find(|id| !id.is_empty()).unwrap_or_default()
}

/// What a user has at an upstream, as the row of a session has it, without the tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Connected {
    pub(crate) user_id: String,
    pub(crate) provider_id: String,
    #[serde(default)]
    pub(crate) upstream_subject: String,
    #[serde(default)]
    pub(crate) connected_at: u64,
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) expires_at: u64,
    /// Whether there is a refresh token.
    pub(crate) is_renewed: bool,
}

impl From<&Upstream> for Connected {
    fn from(row: &Upstream) -> Self {
        Self {
            user_id: row.user_id.clone(),
            provider_id: row.provider_id.clone(),
            upstream_subject: row.upstream_subject.clone(),
            connected_at: row.connected_at,
            expires_at: row.expires_at,
            is_renewed: !row.refresh_token.is_empty(),
        }
    }
}

/// This server as a client of an upstream (RFC 7591, section 3.2.1).
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Registration {
    pub(crate) client_id: String,
    #[serde(default)]
    pub(crate) client_secret: String,
    pub(crate) token_endpoint_auth_method: Method,
    /// When the secret expires, in seconds since 1970. Zero: it does not.
    #[serde(default)]
    pub(crate) client_secret_expires_at: u64,
}

impl Registration {
    /// Whether the secret has expired, or is about to.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.client_secret_expires_at != 0
            && self.client_secret_expires_at <= now + limits::REGISTRATION_MARGIN.as_secs()
    }
}

/// A SHA-256 hash in base64url, or as Go writes bytes: in base64 with padding.
fn hash<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(match STANDARD.decode(&text) {
        Ok(bytes) if bytes.len() == HASH => base64(&bytes),
        _ => text,
    })
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A time in seconds since 1970, or as Go writes one (RFC 3339), whose zero is in the year 1.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(0),
        Value::String(text) => {
            let time: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
            Ok(u64::try_from(time.as_second()).unwrap_or_default())
        }
        // Before 1970, as Go's zero is.
        Value::Number(number) => Ok(number.as_u64().unwrap_or_default()),
        _ => Err(D::Error::custom("not a time")),
    }
}
